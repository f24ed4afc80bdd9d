//! Sentences to ids, for encoders that come with a `tokenizer.json`.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::{Error, Result};

/// The tokenizer of a sentence encoder.
pub struct SentenceTokenizer {
    tokenizer: Tokenizer,
}

impl SentenceTokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// Padding that the file asks for is turned off: buckets pad, and only as far as they must.
    /// Truncation stays as the file says, but never beyond `max_tokens`, the positions of the model.
    pub fn open(path: &Path, max_tokens: usize) -> Result<Self> {
        let text = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
        let invalid = |e: tokenizers::Error| Error::File {
            path: path.to_owned(),
            reason: format!("this is not a tokenizer: {e}"),
            help: "pass the `tokenizer.json` that belongs to the model".into(),
        };
        let mut tokenizer = Tokenizer::from_bytes(text).map_err(invalid)?;
        tokenizer.with_padding(None);
        let mut truncation = tokenizer.get_truncation().cloned().unwrap_or_default();
        truncation.max_length = truncation.max_length.min(max_tokens);
        tokenizer.with_truncation(Some(truncation)).map_err(invalid)?;
        Ok(Self { tokenizer })
    }

    /// The ids of each sentence, with the marks at its ends; long sentences are cut.
    ///
    /// # Errors
    /// If the tokenizer refuses a sentence.
    pub fn encode(&self, sentences: &[impl AsRef<str>]) -> Result<Vec<Vec<u32>>> {
        let encode = |s: &str| match self.tokenizer.encode_fast(s, true) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(e) => Err(Error::Tokenizer {
                reason: format!("it refuses {s:?}: {e}"),
                help: "use another sentence".into(),
            }),
        };
        sentences.iter().map(|s| encode(s.as_ref())).collect()
    }
}
