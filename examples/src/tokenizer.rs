//! The tokenizer that a GGUF file describes: byte-level BPE.
//!
//! Text goes to ids by the `tokenizers` crate; ids come back to text here, byte by byte, because a
//! character may be spread over several tokens and a streamed answer must not show half of one.

use std::collections::HashMap;

use tokenizers::{
    AddedToken, SplitDelimiterBehavior, Tokenizer,
    models::bpe::{BPE, Vocab},
    pre_tokenizers::{
        PreTokenizerWrapper,
        byte_level::ByteLevel,
        digits::Digits,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
};

use crate::{
    Error, Result,
    gguf::{Gguf, GgufError},
};

/// Numbers of `tokenizer.ggml.token_type`.
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// Turns text into token ids and back.
pub struct ChatTokenizer {
    encoder: Tokenizer,
    /// The bytes that a token stands for; control tokens stand for none.
    bytes: Vec<Box<[u8]>>,
    names: Vec<String>,
    bos: Option<u32>,
    add_bos: bool,
    stops: Vec<u32>,
}

impl ChatTokenizer {
    /// Builds the tokenizer of a model file from its metadata: tokens, merges, token types and the
    /// kind of pre-tokenizer.
    ///
    /// Fails for tokenizers that are not byte-level BPE, and for lists that contradict each other.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        let kind = file.str("tokenizer.ggml.model").map_err(metadata)?;
        if kind != "gpt2" {
            return Err(unsupported(format!("the file holds a tokenizer of kind `{kind}`")));
        }
        let names = file.strings("tokenizer.ggml.tokens").map_err(metadata)?;
        let types = file.integers("tokenizer.ggml.token_type").map_err(metadata)?;
        if types.len() != names.len() {
            let (t, n) = (types.len(), names.len());
            return Err(damaged(format!("the file lists {n} tokens and {t} token types")));
        }
        let size = u32::try_from(names.len()).map_err(|_| damaged("it has over 2^32 tokens".into()))?;
        let vocab: Vocab = names.iter().map(|n| n.to_string()).zip(0..size).collect();
        let merges = merges(file, &vocab)?;
        let bpe = BPE::builder().vocab_and_merges(vocab, merges).build().map_err(refused)?;

        let mut encoder = Tokenizer::new(bpe);
        let pre = match file.get("tokenizer.ggml.pre") {
            None => "default",
            Some(_) => file.str("tokenizer.ggml.pre").map_err(metadata)?,
        };
        encoder.with_pre_tokenizer(Some(pre_tokenizer(pre)?));
        let added = |wanted: u64, special: bool| -> Vec<AddedToken> {
            let of_type = names.iter().zip(&types).filter(|(_, t)| **t == wanted);
            of_type.map(|(n, _)| AddedToken::from(*n, special).normalized(false)).collect()
        };
        encoder.add_special_tokens(&added(CONTROL, true));
        encoder.add_tokens(&added(USER_DEFINED, false));

        let id = |key: &str| -> Result<Option<u32>> {
            let Some(_) = file.get(key) else { return Ok(None) };
            match file.u32(key).map_err(metadata)? {
                id if id < size => Ok(Some(id)),
                id => Err(damaged(format!("`{key}` is {id}, and there are {size} tokens"))),
            }
        };
        let flag = |key: &str| file.get(key).and_then(|v| v.as_bool()).unwrap_or(false);
        let mut stops = Vec::new();
        for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"] {
            stops.extend(id(key)?);
        }
        if stops.is_empty() {
            return Err(damaged(
                "it names no token that ends an answer (`tokenizer.ggml.eos_token_id`)".into(),
            ));
        }
        let to_byte = byte_alphabet();
        let bytes = names.iter().zip(&types).map(|(name, ty)| token_bytes(name, *ty, &to_byte)).collect();
        Ok(Self {
            encoder,
            bytes,
            names: names.iter().map(|n| n.to_string()).collect(),
            bos: id("tokenizer.ggml.bos_token_id")?,
            add_bos: flag("tokenizer.ggml.add_bos_token"),
            stops,
        })
    }

    /// The ids of a text. Names of control tokens in it, such as `<|im_end|>`, become those tokens:
    /// that is how a chat template marks turns.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.encoder.encode_fast(text, false).map_err(refused)?;
        let bos = self.bos.filter(|_| self.add_bos);
        Ok(bos.into_iter().chain(encoding.get_ids().iter().copied()).collect())
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
        self.names.len()
    }

    /// Whether there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of the token that starts a text, if the model has one.
    pub fn bos_name(&self) -> Option<&str> {
        self.bos.map(|id| self.names[id as usize].as_str())
    }

    /// The name of the token that ends an answer.
    pub fn eos_name(&self) -> &str {
        &self.names[self.stops[0] as usize]
    }

    /// Starts turning ids back into text.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream { tokenizer: self, pending: Vec::new() }
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
}

impl TextStream<'_> {
    /// Takes one more token and returns the text that is certain now: complete characters only.
    ///
    /// Ids out of range stand for nothing.
    pub fn push(&mut self, id: u32) -> String {
        if let Some(bytes) = self.tokenizer.bytes.get(id as usize) {
            self.pending.extend_from_slice(bytes);
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

/// The merges in order; both parts and their sum must be tokens.
fn merges(file: &Gguf, vocab: &Vocab) -> Result<Vec<(String, String)>> {
    let lines = file.strings("tokenizer.ggml.merges").map_err(metadata)?;
    let mut merges = Vec::with_capacity(lines.len());
    for line in lines {
        // The first character may itself be a space-like symbol, never a space: spaces are `Ġ`.
        let Some((a, b)) = line.split_once(' ') else {
            return Err(damaged(format!("the merge `{line}` does not have two parts")));
        };
        for token in [a, b, &format!("{a}{b}")] {
            if !vocab.contains_key(token) {
                return Err(damaged(format!(
                    "the merge `{line}` needs the token `{token}`, which is missing"
                )));
            }
        }
        merges.push((a.to_owned(), b.to_owned()));
    }
    Ok(merges)
}

/// How text is cut before merging, by the name that the file gives it.
fn pre_tokenizer(name: &str) -> Result<PreTokenizerWrapper> {
    let bytes = |use_regex| PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, use_regex));
    let split = |pattern: &str| -> Result<PreTokenizerWrapper> {
        let pattern = SplitPattern::Regex(pattern.into());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(refused)?;
        Ok(PreTokenizerWrapper::Split(split))
    };
    let parts = match name {
        "default" | "gpt-2" => return Ok(bytes(true)),
        "smollm" => vec![PreTokenizerWrapper::Digits(Digits::new(true)), bytes(true)],
        "llama-bpe" | "llama3" => vec![
            split(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            )?,
            bytes(false),
        ],
        "qwen2" => vec![
            split(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            )?,
            bytes(false),
        ],
        _ => return Err(unsupported(format!("the file asks for the pre-tokenizer `{name}`"))),
    };
    Ok(PreTokenizerWrapper::Sequence(Sequence::new(parts)))
}

/// The printable character that byte-level BPE writes for each byte, backwards.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut unprintable = 0;
    let letters = (0..=u8::MAX).map(|b| {
        if printable(b) {
            return (char::from(b), b);
        }
        // 68 bytes are not printable: U+0100 to U+0143, all of them characters.
        unprintable += 1;
        (char::from_u32(0xFF + unprintable).unwrap_or(char::REPLACEMENT_CHARACTER), b)
    });
    letters.collect()
}

fn token_bytes(name: &str, ty: u64, to_byte: &HashMap<char, u8>) -> Box<[u8]> {
    match ty {
        CONTROL => Box::default(),
        USER_DEFINED => name.as_bytes().into(),
        _ => {
            let mut utf8 = [0; 4];
            let mut bytes = Vec::with_capacity(name.len());
            for c in name.chars() {
                match to_byte.get(&c) {
                    Some(&b) => bytes.push(b),
                    None => bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
                }
            }
            bytes.into()
        }
    }
}

fn metadata(e: GgufError) -> Error {
    Error::Tokenizer { why: e.to_string(), help: e.help().into() }
}

fn damaged(why: String) -> Error {
    Error::Tokenizer { why, help: "download the file again; it is incomplete or damaged".into() }
}

fn unsupported(why: String) -> Error {
    let help = "use a model with byte-level BPE (`gpt2`, pre-tokenizer smollm, gpt-2, llama-bpe or qwen2)";
    Error::Tokenizer { why, help: help.into() }
}

fn refused(e: tokenizers::Error) -> Error {
    damaged(e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[&'Ġ'], b' ');
        assert_eq!(alphabet[&'Ċ'], b'\n');
        assert_eq!(alphabet[&'a'], b'a');
        let mut bytes: Vec<_> = alphabet.into_values().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn only_prefixes_of_characters_may_continue() {
        assert!(may_continue(&[0xF0, 0x9F]));
        assert!(!may_continue(&[0xFF]));
        assert!(!may_continue(&[0x80]));
    }
}
