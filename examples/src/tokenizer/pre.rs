//! Pre-tokenizers: how byte-level tokenizers cut text before anything is merged, by the names that GGUF files have for it.

use tokenizers::{
    SplitDelimiterBehavior,
    pre_tokenizers::{
        PreTokenizerWrapper,
        byte_level::ByteLevel,
        digits::Digits,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
};

use super::refused;
use crate::{Error, Result};

/// Llama 3's, and other names that llama.cpp has for it.
const LLAMA3: [&str; 9] = [
    "llama-bpe",
    "llama3",
    "llama-v3",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "lfm2",
    "jina-v5-nano",
];
/// Qwen 2's.
const QWEN2: [&str; 5] = ["qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"];

/// What a pre-tokenizer does.
pub(super) struct Pre {
    /// How text is cut.
    pub(super) cut: PreTokenizerWrapper,
    /// Whether a word that is a token is taken as that token, however its merges would go.
    pub(super) ignores_merges: bool,
    /// Whether texts start with the token for it where a file does not say.
    pub(super) starts_texts: bool,
}

impl Pre {
    /// The one that GGUF files, and llama.cpp, have this name for.
    ///
    /// # Errors
    /// If the name is not known.
    pub(super) fn named(name: &str) -> Result<Self> {
        let is_llama3 = LLAMA3.contains(&name);
        let parts = match name {
            "gpt-2" => vec![bytes(true)],
            "smollm" => vec![PreTokenizerWrapper::Digits(Digits::new(true)), bytes(true)],
            // What llama.cpp does with files that name none: punctuation, words, numbers, and three digits at a time.
            "default" => {
                let patterns = [
                    r"[\p{P}\$\+<=>\^~\|]+",
                    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                    r"\p{N}+",
                    r"[0-9][0-9][0-9]",
                ];
                let mut parts = patterns.into_iter().map(split).collect::<Result<Vec<_>>>()?;
                parts.push(bytes(false));
                parts
            }
            _ if is_llama3 => vec![
                split(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                )?,
                bytes(false),
            ],
            _ if QWEN2.contains(&name) => vec![
                split(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                )?,
                bytes(false),
            ],
            _ => return Err(unsupported(format!("the file asks for the pre-tokenizer `{name}`"))),
        };
        let cut = match <[_; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) => PreTokenizerWrapper::Sequence(Sequence::new(parts)),
        };
        Ok(Self { cut, ignores_merges: is_llama3, starts_texts: is_llama3 })
    }
}

fn bytes(use_regex: bool) -> PreTokenizerWrapper {
    PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, use_regex))
}

fn split(pattern: &str) -> Result<PreTokenizerWrapper> {
    let pattern = SplitPattern::Regex(pattern.into());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(refused)?;
    Ok(PreTokenizerWrapper::Split(split))
}

/// The error of a tokenizer of a GGUF file that is not read.
pub(super) fn unsupported(reason: String) -> Error {
    let help = "use a model with BPE of pieces (`llama`) or byte-level BPE (`gpt2`, pre-tokenizer smollm, gpt-2, llama-bpe, qwen2 or default)";
    Error::Tokenizer { reason, help: help.into() }
}
