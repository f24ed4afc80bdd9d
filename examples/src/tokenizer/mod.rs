//! Tokenizers: those that a GGUF file describes, and `tokenizer.json` of a Hugging Face folder.
//!
//! Text goes to ids by the `tokenizers` crate; ids come back to text here, byte by byte, because a
//! character may be spread over several tokens and a streamed answer must not show half of one.

mod describe;
mod ends;
mod gguf;
mod hugging_face;
mod pieces;
mod pre;
mod spelling;

pub(crate) use describe::describe;

use std::collections::HashMap;

use tokenizers::Tokenizer;

use crate::{Error, Result};

/// Turns text into token ids and back.
pub struct ChatTokenizer {
    encoder: Tokenizer,
    /// The bytes that a token stands for; control tokens stand for none.
    bytes: HashMap<u32, Box<[u8]>>,
    /// The token that starts a text, if the model has one, with its name.
    bos: Option<(u32, String)>,
    /// Whether texts start with it without being told to.
    add_bos: bool,
    /// Whether texts that are no conversation start with it.
    texts_start: bool,
    /// The tokens that end an answer; there is at least one.
    stops: Vec<u32>,
    /// The name of the first of them.
    eos: String,
    /// Whether a space at the start of an answer is the tokenizer's own, not the answer's.
    drops_first_space: bool,
}

impl ChatTokenizer {
    /// The ids of a text. Names of control tokens in it, such as `<|im_end|>`, become those tokens:
    /// that is how a chat template marks turns. The token that starts a text is added if the model wants it and `text` does not
    /// begin with it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.encoder.encode_fast(text, false).map_err(refused)?;
        let ids = encoding.get_ids();
        // Many templates begin with it as well.
        let bos =
            self.bos.iter().filter(|(id, _)| self.add_bos && ids.first() != Some(id)).map(|(id, _)| *id);
        Ok(bos.chain(ids.iter().copied()).collect())
    }

    /// The ids of a text that is no conversation: as [`encode`](Self::encode), and with the tokens that the tokenizer itself adds to
    /// texts.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.encoder.encode_fast(text, true).map_err(refused)?;
        let ids = encoding.get_ids();
        let bos = self.start_of_text().filter(|bos| ids.first() != Some(bos));
        Ok(bos.into_iter().chain(ids.iter().copied()).collect())
    }

    /// The token that starts a text, if texts start with one.
    pub fn start_of_text(&self) -> Option<u32> {
        let (id, _) = self.bos.as_ref()?;
        (self.add_bos || self.texts_start).then_some(*id)
    }

    /// The tokens that end an answer; there is at least one.
    pub fn stops(&self) -> &[u32] {
        &self.stops
    }

    /// Whether the token ends an answer.
    pub fn is_stop(&self, id: u32) -> bool {
        self.stops.contains(&id)
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The largest id of a token.
    pub fn largest(&self) -> u32 {
        self.bytes.keys().copied().max().unwrap_or(0)
    }

    /// The name of the token that starts a text, if the model has one.
    pub fn bos_name(&self) -> Option<&str> {
        self.bos.as_ref().map(|(_, name)| name.as_str())
    }

    /// The name of the token that ends an answer.
    pub fn eos_name(&self) -> &str {
        &self.eos
    }

    /// Starts turning ids back into text.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream { tokenizer: self, pending: Vec::new(), begun: !self.drops_first_space }
    }

    /// The text of complete ids. Control tokens have none; broken UTF-8 becomes U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut stream = self.stream();
        let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        text
    }
}

/// Text that arrives token by token. See [`ChatTokenizer::stream`].
pub struct TextStream<'a> {
    tokenizer: &'a ChatTokenizer,
    pending: Vec<u8>,
    /// Whether a space would be one of the answer.
    begun: bool,
}

impl TextStream<'_> {
    /// Takes one more token and returns the text that is certain now: complete characters only.
    ///
    /// Ids out of range stand for nothing.
    pub fn push(&mut self, id: u32) -> String {
        if let Some(bytes) = self.tokenizer.bytes.get(&id).filter(|bytes| !bytes.is_empty()) {
            let own = !self.begun && bytes.first() == Some(&b' ');
            self.pending.extend_from_slice(&bytes[usize::from(own)..]);
            self.begun = true;
        }
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            let end = done + chunk.valid().len() + chunk.invalid().len();
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            if chunk.invalid().is_empty() {
                continue;
            }
            // At the very end, the start of a character may still be completed by the next token.
            if end == self.pending.len() && may_continue(chunk.invalid()) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done = end;
        }
        self.pending.drain(..done);
        text
    }

    /// The rest, at the end of the answer: U+FFFD if it stops within a character.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// Whether these bytes are a proper prefix of some character.
fn may_continue(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.error_len().is_none())
}

fn damaged(reason: String) -> Error {
    Error::Tokenizer { reason, help: "download the file again; it is incomplete or damaged".into() }
}

fn refused(e: tokenizers::Error) -> Error {
    damaged(e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_of_characters_may_continue() {
        assert!(may_continue(&[0xF0, 0x9F]));
        assert!(!may_continue(&[0xFF]));
        assert!(!may_continue(&[0x80]));
    }
}
