//! The tokenizer that a GGUF file describes: byte-level BPE, or BPE of pieces as SentencePiece has it.

use tokenizers::{
    AddedToken, Tokenizer,
    models::bpe::{BPE, Vocab},
};

use super::{
    ChatTokenizer, damaged, ends, pieces,
    pre::{Pre, unsupported},
    refused,
    spelling::Spelling,
};
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
        let mut types = file.integers("tokenizer.ggml.token_type").map_err(metadata)?;
        if types.len() != names.len() {
            let (t, n) = (types.len(), names.len());
            return Err(damaged(format!("the file lists {n} tokens and {t} token types")));
        }
        // Some files call them normal, and no answer consists of them.
        let ends = ends::known(&names);
        for id in &ends {
            types[*id as usize] = CONTROL;
        }
        let size = u32::try_from(names.len()).map_err(|_| damaged("it has over 2^32 tokens".into()))?;
        let vocab: Vocab = names.iter().map(|n| n.to_string()).zip(0..size).collect();
        let flag = |key: &str| file.get(key).and_then(|v| v.as_bool());
        // Llama 2's start of a text is added where a file says nothing, and that of some byte-level ones.
        let (mut encoder, spelling, starts) = match kind {
            "gpt2" => {
                let pre = pre(file)?;
                (byte_level(file, vocab, &pre)?, Spelling::byte_level(), pre.starts_texts)
            }
            _ => {
                let prefix = flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
                let encoder = of_pieces(file, vocab, &names, &types, prefix)?;
                (encoder, Spelling::Pieces { drops_first_space: prefix }, true)
            }
        };
        let added = |wanted: &[u64], special: bool| -> Vec<AddedToken> {
            let of_type = names.iter().zip(&types).filter(|(_, t)| wanted.contains(t));
            of_type.map(|(n, _)| AddedToken::from(*n, special).normalized(false)).collect()
        };
        encoder.add_special_tokens(&added(&[CONTROL, UNKNOWN], true));
        encoder.add_tokens(&added(&[USER_DEFINED], false));

        let id = |key: &str| id(file, key, size);
        let stated = ends::KEYS.map(|key| id(&format!("tokenizer.ggml.{key}_token_id")));
        let stated = stated.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        let stops = ends::stops(stated, ends)?;
        let bytes = names.iter().zip(&types).map(|(name, ty)| token_bytes(name, *ty, &spelling));
        let named = |id: u32| names[id as usize].to_owned();
        Ok(Self {
            encoder,
            bytes: (0..size).zip(bytes).collect(),
            bos: id("tokenizer.ggml.bos_token_id")?.map(|id| (id, named(id))),
            // As llama.cpp has it.
            add_bos: flag("tokenizer.ggml.add_bos_token").unwrap_or(starts),
            texts_start: false,
            eos: named(stops[0]),
            stops,
            drops_first_space: matches!(spelling, Spelling::Pieces { drops_first_space: true }),
        })
    }
}

/// The token that the metadata of this name is the id of, of `size` tokens.
fn id(file: &Gguf, key: &str, size: u32) -> Result<Option<u32>> {
    let Some(_) = file.get(key) else { return Ok(None) };
    match file.u32(key).map_err(metadata)? {
        id if id < size => Ok(Some(id)),
        id => Err(damaged(format!("`{key}` is {id}, and there are {size} tokens"))),
    }
}

/// How the file says that text is cut.
fn pre(file: &Gguf) -> Result<Pre> {
    match file.get("tokenizer.ggml.pre") {
        None => Pre::named("default"),
        Some(_) => Pre::named(file.str("tokenizer.ggml.pre").map_err(metadata)?),
    }
}

/// Byte-level BPE.
fn byte_level(file: &Gguf, vocab: Vocab, pre: &Pre) -> Result<Tokenizer> {
    let merges = merges(file, &vocab)?;
    let bpe = BPE::builder().vocab_and_merges(vocab, merges).ignore_merges(pre.ignores_merges);
    let mut encoder = Tokenizer::new(bpe.build().map_err(refused)?);
    encoder.with_pre_tokenizer(Some(pre.cut.clone()));
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

fn token_bytes(name: &str, ty: u64, spelling: &Spelling) -> Box<[u8]> {
    match ty {
        CONTROL | UNKNOWN => Box::default(),
        USER_DEFINED => name.as_bytes().into(),
        _ => spelling.bytes(name),
    }
}

fn metadata(e: GgufError) -> Error {
    Error::Tokenizer { reason: e.to_string(), help: e.help().into() }
}
