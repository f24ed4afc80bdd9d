//! The tokenizer that a GGUF file describes: byte-level BPE, or BPE of pieces as SentencePiece has it.

use std::collections::HashSet;

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

use super::{ChatTokenizer, damaged, pieces, refused, spelling::Spelling};
use crate::{
    Error, Result,
    gguf::{Gguf, GgufError},
};

/// Numbers of `tokenizer.ggml.token_type`.
pub(super) const NORMAL: u64 = 1;
pub(super) const UNKNOWN: u64 = 2;
pub(super) const CONTROL: u64 = 3;
pub(super) const USER_DEFINED: u64 = 4;
pub(super) const UNUSED: u64 = 5;
pub(super) const BYTE: u64 = 6;

/// Tokens that end a turn in files that name only the one that ends a text, as those of Gemma.
const END_OF_TURN: [&str; 1] = ["<end_of_turn>"];

impl ChatTokenizer {
    /// Builds the tokenizer of a model file from its metadata: tokens, token types, merges and the kind of pre-tokenizer, or
    /// scores.
    ///
    /// # Errors
    /// For tokenizers that are neither byte-level BPE nor BPE of pieces, and for lists that contradict each other.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        let kind = file.str("tokenizer.ggml.model").map_err(metadata)?;
        if !matches!(kind, "gpt2" | "llama") {
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
        let flag = |key: &str| file.get(key).and_then(|v| v.as_bool());
        let (mut encoder, spelling) = match kind {
            "gpt2" => (byte_level(file, vocab)?, Spelling::byte_level()),
            _ => {
                let prefix = flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
                let encoder = of_pieces(file, vocab, &names, &types, prefix)?;
                (encoder, Spelling::Pieces { drops_first_space: prefix })
            }
        };
        let added = |wanted: &[u64], special: bool| -> Vec<AddedToken> {
            let of_type = names.iter().zip(&types).filter(|(_, t)| wanted.contains(t));
            of_type.map(|(n, _)| AddedToken::from(*n, special).normalized(false)).collect()
        };
        encoder.add_special_tokens(&added(&[CONTROL, UNKNOWN], true));
        encoder.add_tokens(&added(&[USER_DEFINED], false));

        let id = |key: &str| -> Result<Option<u32>> {
            let Some(_) = file.get(key) else { return Ok(None) };
            match file.u32(key).map_err(metadata)? {
                id if id < size => Ok(Some(id)),
                id => Err(damaged(format!("`{key}` is {id}, and there are {size} tokens"))),
            }
        };
        let ends = [id("tokenizer.ggml.eos_token_id")?, id("tokenizer.ggml.eot_token_id")?];
        let stops = stops(ends.into_iter().flatten(), &names, &types)?;
        let bytes = names.iter().zip(&types).map(|(name, ty)| token_bytes(name, *ty, &spelling));
        let named = |id: u32| names[id as usize].to_owned();
        Ok(Self {
            encoder,
            bytes: (0..size).zip(bytes).collect(),
            bos: id("tokenizer.ggml.bos_token_id")?.map(|id| (id, named(id))),
            // As llama.cpp has it.
            add_bos: flag("tokenizer.ggml.add_bos_token").unwrap_or(kind == "llama"),
            texts_start: false,
            eos: named(stops[0]),
            stops,
            drops_first_space: matches!(spelling, Spelling::Pieces { drops_first_space: true }),
        })
    }
}

/// The tokens that end an answer: those that the file names, and others that are known to.
fn stops(named: impl Iterator<Item = u32>, names: &[&str], types: &[u64]) -> Result<Vec<u32>> {
    let mut stops: Vec<u32> = named.collect();
    if stops.is_empty() {
        return Err(damaged("it names no token that ends an answer (`tokenizer.ggml.eos_token_id`)".into()));
    }
    let all = (0..).zip(names.iter().zip(types));
    stops.extend(
        all.filter(|(_, (name, ty))| END_OF_TURN.contains(name) && **ty == CONTROL).map(|(id, _)| id),
    );
    let mut seen = HashSet::new();
    stops.retain(|id| seen.insert(*id));
    Ok(stops)
}

/// Byte-level BPE.
fn byte_level(file: &Gguf, vocab: Vocab) -> Result<Tokenizer> {
    let merges = merges(file, &vocab)?;
    let pre = match file.get("tokenizer.ggml.pre") {
        None => "default",
        Some(_) => file.str("tokenizer.ggml.pre").map_err(metadata)?,
    };
    let cut = pre_tokenizer(pre)?;
    // The tokenizers of Llama 3 take a word that is a token as that token, however its merges would go.
    let bpe = BPE::builder().vocab_and_merges(vocab, merges).ignore_merges(ignores_merges(pre));
    let mut encoder = Tokenizer::new(bpe.build().map_err(refused)?);
    encoder.with_pre_tokenizer(Some(cut));
    Ok(encoder)
}

/// BPE of pieces with scores.
fn of_pieces(file: &Gguf, vocab: Vocab, names: &[&str], types: &[u64], prefix: bool) -> Result<Tokenizer> {
    let scores = file.floats("tokenizer.ggml.scores").map_err(metadata)?;
    if scores.len() != names.len() {
        let (s, n) = (scores.len(), names.len());
        return Err(damaged(format!("the file lists {n} tokens and {s} scores")));
    }
    let scored = names.iter().zip(types).zip(scores);
    let pieces: Vec<_> = scored
        .filter(|((_, ty), _)| matches!(**ty, NORMAL | USER_DEFINED))
        .map(|((name, _), score)| (*name, score))
        .collect();
    let unknown = names.iter().zip(types).find(|(_, ty)| **ty == UNKNOWN).map(|(name, _)| *name);
    pieces::tokenizer(vocab, pieces::merges(&pieces)?, prefix, unknown)
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
pub(super) fn pre_tokenizer(name: &str) -> Result<PreTokenizerWrapper> {
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

fn token_bytes(name: &str, ty: u64, spelling: &Spelling) -> Box<[u8]> {
    match ty {
        CONTROL | UNKNOWN => Box::default(),
        USER_DEFINED => name.as_bytes().into(),
        _ => spelling.bytes(name),
    }
}

/// Whether a word that is a token is taken as it is.
pub(super) fn ignores_merges(pre: &str) -> bool {
    matches!(pre, "llama-bpe" | "llama3")
}

fn metadata(e: GgufError) -> Error {
    Error::Tokenizer { reason: e.to_string(), help: e.help().into() }
}

fn unsupported(reason: String) -> Error {
    let help = "use a model with BPE of pieces (`llama`) or byte-level BPE (`gpt2`, pre-tokenizer smollm, gpt-2, llama-bpe or qwen2)";
    Error::Tokenizer { reason, help: help.into() }
}
