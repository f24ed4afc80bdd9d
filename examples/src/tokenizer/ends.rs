//! The tokens that end an answer, in GGUF files: those that the metadata names, and those that llama.cpp knows by their texts, as most
//! files name one only.

use std::collections::HashSet;

use super::damaged;
use crate::Result;

/// Metadata that name tokens which end an answer: `tokenizer.ggml.….token_id`. The last three separate files of a program.
pub(super) const KEYS: [&str; 6] = ["eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"];

/// Texts of tokens that end a text, a turn or a message.
const ENDS: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts of tokens that fill up or separate files of a program.
const SEPARATORS: [&str; 11] = [
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// The tokens that are known by their texts to end an answer.
pub(super) fn known(names: &[&str]) -> Vec<u32> {
    let has = |name: &str| names.contains(&name);
    // There, `<|end|>` is the end of one message of several, and `</s>` a piece of text.
    let messages = (has("<|return|>") || has("<|flush|>")) && (has("<|call|>") || has("<|calls|>"));
    let text = has("<|tool_response>");
    let ends = |name: &str| match name {
        "<|end|>" => !messages,
        "</s>" => !text,
        _ => ENDS.contains(&name) || SEPARATORS.contains(&name),
    };
    (0..).zip(names).filter(|(_, name)| ends(name)).map(|(id, _)| id).collect()
}

/// The tokens that end an answer: those that the file states, and the [`known`] ones.
///
/// # Errors
/// If the file states none.
pub(super) fn stops(stated: Vec<u32>, known: Vec<u32>) -> Result<Vec<u32>> {
    if stated.is_empty() {
        return Err(damaged("it names no token that ends an answer (`tokenizer.ggml.eos_token_id`)".into()));
    }
    let mut seen = HashSet::new();
    Ok(stated.into_iter().chain(known).filter(|id| seen.insert(*id)).collect())
}
