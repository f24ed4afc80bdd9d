//! `tokenizer.json` of a Hugging Face folder, with what other files of it say about tokens.

use std::{collections::HashMap, io, path::Path};

use serde_json::Value;
use tokenizers::Tokenizer;

use super::{ChatTokenizer, byte_alphabet, spelled_bytes};
use crate::{Error, Result, checkpoint::json};

/// How ids become text.
enum Spelling {
    /// A character for each byte.
    ByteLevel(HashMap<char, u8>),
    /// U+2581 is a space, and `<0x0A>` a byte.
    Pieces {
        /// Whether the first space of a text is the tokenizer's own.
        drops_first_space: bool,
    },
}

impl ChatTokenizer {
    /// Reads `tokenizer.json`, and from `tokenizer_config.json`, `generation_config.json` and `config.json`, as far as they are
    /// there, which tokens start a text and end an answer.
    ///
    /// # Errors
    /// If `tokenizer.json` is missing or cannot be read; if it is neither byte-level nor made of pieces as SentencePiece has
    /// them; if no token ends an answer.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let at = |why: String, help: &str| Error::File { path: path.clone(), why, help: help.into() };
        let text = std::fs::read(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                let help = "fetch it as well; a `tokenizer.model` or `vocab.json` alone is not read";
                at("the folder has no tokenizer".into(), help)
            }
            _ => Error::io(&path, "read", &e),
        })?;
        let damaged = |e: &dyn std::fmt::Display| {
            at(format!("cannot be understood: {e}"), "fetch it again, or use a model with another tokenizer")
        };
        let parsed: Value = serde_json::from_slice(&text).map_err(|e| damaged(&e))?;
        let spelling = Spelling::of(&parsed["decoder"]).ok_or_else(|| {
            at(
                "its `decoder` is neither byte-level nor made of pieces".into(),
                "use a model with a BPE tokenizer",
            )
        })?;
        let mut encoder = Tokenizer::from_bytes(&text).map_err(|e| damaged(&e))?;
        // A tokenizer for training may cut its texts.
        encoder.with_truncation(None).map_err(|e| at(e.to_string(), "fetch it again"))?;
        encoder.with_padding(None);

        let added = encoder.get_added_tokens_decoder();
        let bytes: HashMap<u32, Box<[u8]>> = encoder
            .get_vocab(true)
            .into_iter()
            .map(|(name, id)| match added.get(&id) {
                Some(token) if token.special => (id, Box::default()),
                Some(_) => (id, name.as_bytes().into()),
                None => (id, spelling.bytes(&name)),
            })
            .collect();

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
        let mut stops: Vec<u32> = eos.iter().map(|(id, _)| *id).collect();
        for file in ["generation_config.json", "config.json"] {
            for stop in ids(&json(&folder.join(file))?.unwrap_or_default()["eos_token_id"]) {
                if bytes.contains_key(&stop) && !stops.contains(&stop) {
                    stops.push(stop);
                }
            }
        }
        let first = stops.first().and_then(|id| encoder.id_to_token(*id));
        let Some(eos) = eos.map(|(_, name)| name).or(first) else {
            let why = "no token ends an answer: neither `eos_token` nor an `eos_token_id` names one".into();
            return Err(at(why, "fetch `tokenizer_config.json` and `generation_config.json` as well"));
        };
        Ok(Self {
            bos: id("bos_token")?,
            // Templates begin with it where a model wants it.
            add_bos: false,
            stops,
            eos,
            drops_first_space: matches!(spelling, Spelling::Pieces { drops_first_space: true }),
            encoder,
            bytes,
        })
    }
}

impl Spelling {
    fn of(decoder: &Value) -> Option<Self> {
        let parts = match decoder["type"].as_str()? {
            "Sequence" => decoder["decoders"].as_array()?.as_slice(),
            _ => std::slice::from_ref(decoder),
        };
        let find = |kind: &str| parts.iter().find(|part| part["type"] == kind);
        if find("ByteLevel").is_some() {
            return Some(Self::ByteLevel(byte_alphabet()));
        }
        let space = find("Replace")
            .is_some_and(|part| part["pattern"]["String"] == "\u{2581}" && part["content"] == " ");
        let drops_first_space =
            find("Strip").is_some_and(|part| part["content"] == " " && part["start"] == 1);
        (space && find("ByteFallback").is_some()).then_some(Self::Pieces { drops_first_space })
    }

    fn bytes(&self, name: &str) -> Box<[u8]> {
        match self {
            Self::ByteLevel(to_byte) => spelled_bytes(name, to_byte),
            Self::Pieces { .. } => match fallback(name) {
                Some(byte) => [byte].into(),
                None => name.replace('\u{2581}', " ").into_bytes().into(),
            },
        }
    }
}

/// The byte of `<0x0A>`.
fn fallback(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    // A sign is no digit, though a number may begin with one.
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
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
    fn bytes_of_pieces() {
        assert_eq!(fallback("<0x0A>"), Some(10));
        assert!(
            ["<0x0A", "<0xGG>", "<0x123>", "<0x>", "<0x+1>", "a"]
                .iter()
                .all(|name| fallback(name) != Some(1))
        );
        let pieces = Spelling::Pieces { drops_first_space: true };
        assert_eq!(*pieces.bytes("\u{2581}a\u{2581}"), *b" a ");
    }

    #[test]
    fn one_id_or_several() {
        assert_eq!(ids(&serde_json::json!(3)), [3]);
        assert_eq!(ids(&serde_json::json!([3, -1, 5, "7", 99999999999u64])), [3, 5]);
        assert!(ids(&Value::Null).is_empty());
    }
}
