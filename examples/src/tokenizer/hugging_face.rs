//! `tokenizer.json` of a Hugging Face folder, with what other files of it say about tokens.

use std::{collections::HashMap, io, path::Path};

use serde_json::Value;
use tokenizers::Tokenizer;

use super::{ChatTokenizer, spelling::Spelling};
use crate::{Error, Result, checkpoint::json};

impl ChatTokenizer {
    /// Reads `tokenizer.json`, and from `tokenizer_config.json`, `generation_config.json` and `config.json`, as far as they are
    /// there, which tokens start a text and end an answer.
    ///
    /// # Errors
    /// If `tokenizer.json` is missing or cannot be read; if it is neither byte-level nor made of pieces as SentencePiece has
    /// them, or has a prefix for tokens within words; if no token ends an answer.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let at = |reason: String, help: &str| Error::File { path: path.clone(), reason, help: help.into() };
        let text = read(&path)?;
        let damaged = |e: &dyn std::fmt::Display| {
            at(format!("cannot be understood: {e}"), "fetch it again, or use a model with another tokenizer")
        };
        let parsed: Value = serde_json::from_slice(&text).map_err(|e| damaged(&e))?;
        let spelling = spelling(&parsed).map_err(|reason| {
            at(reason.into(), "use a model with a BPE tokenizer that is byte-level or made of pieces")
        })?;
        let mut encoder = Tokenizer::from_bytes(&text).map_err(|e| damaged(&e))?;
        // A tokenizer for training may cut its texts.
        encoder.with_truncation(None).map_err(|e| at(e.to_string(), "fetch it again"))?;
        encoder.with_padding(None);

        let bytes = token_bytes(&encoder, &spelling);
        let settings = json(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
        let id = |key: &str| -> Result<Option<(u32, String)>> {
            let Some(name) = token_name(&settings[key]) else { return Ok(None) };
            match encoder.token_to_id(name) {
                Some(id) => Ok(Some((id, name.to_owned()))),
                None => Err(at(
                    format!("it does not have `{name}`, the `{key}`"),
                    "fetch both files of the tokenizer again",
                )),
            }
        };
        let eos = id("eos_token")?;
        let stops = stops(folder, eos.as_ref().map(|(id, _)| *id), &bytes)?;
        let first = stops.first().and_then(|id| encoder.id_to_token(*id));
        let Some(eos) = eos.map(|(_, name)| name).or(first) else {
            let reason =
                "no token ends an answer: neither `eos_token` nor an `eos_token_id` names one".into();
            return Err(at(reason, "fetch `tokenizer_config.json` and `generation_config.json` as well"));
        };
        let bos = id("bos_token")?;
        // Of `add_bos_token`, transformers takes no notice where `tokenizer.json` says what is added.
        let added = encoder.encode_fast("", true).map_err(|e| damaged(&e))?;
        let texts_start = bos.as_ref().is_some_and(|(id, _)| added.get_ids().first() == Some(id));
        Ok(Self {
            bos,
            // Templates begin with it where a model wants it.
            add_bos: false,
            texts_start,
            stops,
            eos,
            drops_first_space: matches!(spelling, Spelling::Pieces { drops_first_space: true }),
            encoder,
            bytes,
        })
    }
}

/// How the tokens of a `tokenizer.json` are spelt.
///
/// # Errors
/// What it has that neither kind of tokenizer has.
fn spelling(tokenizer: &Value) -> Result<Spelling, &'static str> {
    let spelling = Spelling::of(&tokenizer["decoder"])
        .ok_or("its `decoder` is neither byte-level nor made of pieces")?;
    match tokenizer["model"]["continuing_subword_prefix"].as_str() {
        None | Some("") => Ok(spelling),
        // The library cuts it off tokens that may be shorter.
        Some(_) => Err("its tokens continue words by a prefix (`continuing_subword_prefix`)"),
    }
}

/// Reads `tokenizer.json`.
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::File {
            path: path.to_owned(),
            reason: "the folder has no tokenizer".into(),
            help: "fetch it as well; a `tokenizer.model` or `vocab.json` alone is not read".into(),
        },
        _ => Error::io(path, "read", &e),
    })
}

/// The bytes of each token; special ones have none.
fn token_bytes(encoder: &Tokenizer, spelling: &Spelling) -> HashMap<u32, Box<[u8]>> {
    let added = encoder.get_added_tokens_decoder();
    let all = encoder.get_vocab(true).into_iter();
    all.map(|(name, id)| match added.get(&id) {
        Some(token) if token.special => (id, Box::default()),
        Some(_) => (id, spelling.added(&name)),
        None => (id, spelling.bytes(&name)),
    })
    .collect()
}

/// The tokens that end an answer: the one of the tokenizer, and those of the model that there are.
fn stops(folder: &Path, eos: Option<u32>, tokens: &HashMap<u32, Box<[u8]>>) -> Result<Vec<u32>> {
    let mut stops: Vec<u32> = eos.into_iter().collect();
    for file in ["generation_config.json", "config.json"] {
        for stop in ids(&json(&folder.join(file))?.unwrap_or_default()["eos_token_id"]) {
            if tokens.contains_key(&stop) && !stops.contains(&stop) {
                stops.push(stop);
            }
        }
    }
    Ok(stops)
}

/// A token's name, which is text or in an object.
fn token_name(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

/// One id, or several.
fn ids(value: &Value) -> Vec<u32> {
    let several = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    several.iter().filter_map(|id| u32::try_from(id.as_u64()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_id_or_several() {
        assert_eq!(ids(&serde_json::json!(3)), [3]);
        assert_eq!(ids(&serde_json::json!([3, -1, 5, "7", 99999999999u64])), [3, 5]);
        assert!(ids(&Value::Null).is_empty());
    }
}
