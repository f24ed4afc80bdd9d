//! The tokenizer that a GGUF file describes: byte-level BPE.

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

use super::{ChatTokenizer, byte_alphabet, damaged, refused, spelled_bytes};
use crate::{
    Error, Result,
    gguf::{Gguf, GgufError},
};

/// Numbers of `tokenizer.ggml.token_type`.
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

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
        let bytes = names.iter().zip(&types).map(|(name, ty)| token_bytes(name, *ty, &to_byte));
        let named = |id: u32| names[id as usize].to_owned();
        Ok(Self {
            encoder,
            bytes: (0..size).zip(bytes).collect(),
            bos: id("tokenizer.ggml.bos_token_id")?.map(|id| (id, named(id))),
            add_bos: flag("tokenizer.ggml.add_bos_token"),
            eos: named(stops[0]),
            stops,
            drops_first_space: false,
        })
    }
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

fn token_bytes(name: &str, ty: u64, to_byte: &HashMap<char, u8>) -> Box<[u8]> {
    match ty {
        CONTROL => Box::default(),
        USER_DEFINED => name.as_bytes().into(),
        _ => spelled_bytes(name, to_byte),
    }
}

fn metadata(e: GgufError) -> Error {
    Error::Tokenizer { why: e.to_string(), help: e.help().into() }
}

fn unsupported(why: String) -> Error {
    let help = "use a model with byte-level BPE (`gpt2`, pre-tokenizer smollm, gpt-2, llama-bpe or qwen2)";
    Error::Tokenizer { why, help: help.into() }
}
