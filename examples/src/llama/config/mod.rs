//! The sizes of a model of the Llama architecture and its relatives, as its files give them.

mod gguf;
mod hugging_face;

use graphable::ops::RopeOptions;

use crate::{Error, Result};

/// Sizes and constants of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Number of layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub dim: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// How queries and keys turn with their positions.
    pub rope: RopeOptions,
    /// Whether neighbours of a head turn together, as in GGUF files of Llama; otherwise an element and the one half a head further on.
    pub neighbours_turn: bool,
    /// Width inside the feed-forward part.
    pub ffn: usize,
    /// Added to the mean square in norms.
    pub eps: f32,
    /// Positions that the model was trained for.
    pub context: usize,
    /// Number of tokens.
    pub vocab: usize,
    /// How many positions a token attends to, its own included, if not to all before it (Mistral).
    pub window: Option<usize>,
    /// Whether queries, keys and values have biases (Qwen2).
    pub qkv_bias: bool,
    /// Whether queries and keys are normalised, head by head (Qwen3).
    pub qk_norm: bool,
    /// Whether the embedding also leads back to logits, so that there is no matrix for that.
    pub tied: bool,
}

impl Config {
    /// The names of all tensors of the model, as GGUF files have them.
    pub(crate) fn tensors(&self) -> Vec<String> {
        let mut names = vec!["token_embd.weight".to_owned(), "output_norm.weight".into()];
        if !self.tied {
            names.push("output.weight".into());
        }
        let mut parts = vec![
            "attn_norm.weight",
            "attn_q.weight",
            "attn_k.weight",
            "attn_v.weight",
            "attn_output.weight",
            "ffn_norm.weight",
            "ffn_gate.weight",
            "ffn_up.weight",
            "ffn_down.weight",
        ];
        if self.qkv_bias {
            parts.extend(["attn_q.bias", "attn_k.bias", "attn_v.bias"]);
        }
        if self.qk_norm {
            parts.extend(["attn_q_norm.weight", "attn_k_norm.weight"]);
        }
        for i in 0..self.layers {
            names.extend(parts.iter().map(|part| format!("blk.{i}.{part}")));
        }
        names
    }

    /// Refuses sizes that contradict each other. The file has so many `tensors`, and keys that rotate by `rope_dim` elements and
    /// the base `theta`.
    fn check(&self, tensors: usize, rope_dim: usize, theta: f32) -> Result<()> {
        let Self { heads, kv_heads, head_dim, eps, .. } = *self;
        let fail = |why: String| Err(contradiction(why));
        if self.layers > tensors {
            return fail(format!("{} layers cannot be made of {tensors} tensors", self.layers));
        }
        if !heads.is_multiple_of(kv_heads) {
            return fail(format!("{heads} query heads cannot share {kv_heads} key heads evenly"));
        }
        if rope_dim > head_dim || rope_dim == 0 || !rope_dim.is_multiple_of(2) {
            return fail(format!("{rope_dim} of {head_dim} elements of a head cannot rotate in pairs"));
        }
        if !(theta.is_finite() && theta > 0.0 && eps.is_finite() && eps >= 0.0) {
            return fail(format!("the rotation's base {theta} or the norm's epsilon {eps} is impossible"));
        }
        Ok(())
    }
}

/// Names of tensors that the model `needs` and the files do not have, as many as a message should name.
fn missing(needs: impl Iterator<Item = String>, has: impl Fn(&str) -> bool) -> Option<String> {
    const NAMED: usize = 3;
    let missing: Vec<_> = needs.filter(|name| !has(name)).map(|name| format!("`{name}`")).collect();
    match missing.len() {
        0 => None,
        n if n <= NAMED => Some(missing.join(", ")),
        n => Some(format!("{} and {} more", missing[..NAMED].join(", "), n - NAMED)),
    }
}

fn invalid(why: String, help: &str) -> Error {
    Error::Model { what: "model".into(), why, help: help.into() }
}

fn contradiction(why: String) -> Error {
    invalid(format!("the file contradicts itself: {why}"), "convert or download the model again")
}
