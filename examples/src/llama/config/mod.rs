//! The sizes of a model of the Llama architecture and its relatives, as its files give them.

mod describe;
mod gguf;
mod hugging_face;
mod rope;

pub(crate) use describe::{StoredRope, StoredScaling};
pub(crate) use gguf::DIVISORS;

use graphable::{ConfigValue, ops::RopeOptions};

use crate::{Error, Result};

/// What a model computes, besides its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama and Mistral.
    Llama,
    /// Qwen2: biases of queries, keys and values.
    Qwen2,
    /// Qwen3: norms of queries and keys.
    Qwen3,
    /// Gemma: a scaled embedding, and GELU.
    Gemma,
    /// Gemma 2: as Gemma, with norms of what is added, windows in every other layer, and soft caps.
    Gemma2,
    /// Gemma 3, of text: as Gemma 2 without soft caps; norms of queries and keys, and another base in layers with windows.
    Gemma3,
}

impl Family {
    /// The name of the architecture in GGUF files.
    pub fn architecture(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma => "gemma",
            Self::Gemma2 => "gemma2",
            Self::Gemma3 => "gemma3",
        }
    }

    /// Whether it is Gemma, of any generation.
    pub fn is_gemma(self) -> bool {
        matches!(self, Self::Gemma | Self::Gemma2 | Self::Gemma3)
    }

    /// Of how many layers one sees all tokens, where the others see a window.
    fn period(self) -> usize {
        match self {
            Self::Gemma2 => 2,
            Self::Gemma3 => 6,
            _ => 0,
        }
    }

    /// What llama.cpp multiplies products of queries and keys with, whatever a file says: the width of a head decides, but for the
    /// largest model of Gemma 2 and 3, which it knows by its layers, and where `width`, that of the model by its heads, does.
    fn attention_scale(self, layers: usize, width: usize, head_dim: usize) -> f32 {
        let by_width = matches!((self, layers), (Self::Gemma2, 46) | (Self::Gemma3, 62));
        let scale = if by_width { width } else { head_dim };
        (scale as f32).sqrt().recip()
    }
}

/// Whether two scales differ by no more than rounding.
fn is_near(a: f32, b: f32) -> bool {
    (a / b - 1.0).abs() < 1e-5
}

/// The function in the feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ConfigValue)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// The approximation of GELU by tanh.
    GeluTanh,
}

/// Sizes and constants of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The family.
    pub family: Family,
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
    /// How many positions a token attends to, its own included, if not to all before it (Mistral, Gemma 2 and 3).
    pub window: Option<usize>,
    /// Of so many layers the last one sees all tokens, whatever the window is; 0 if none does.
    pub period: usize,
    /// How queries and keys turn in layers with a window, if otherwise than in those that see all tokens (Gemma 3).
    pub local_rope: Option<RopeOptions>,
    /// What products of queries and keys are multiplied by.
    pub attention_scale: f32,
    /// The soft cap of these products, if they have one (Gemma 2).
    pub attention_cap: Option<f32>,
    /// The soft cap of logits, if they have one (Gemma 2).
    pub logit_cap: Option<f32>,
    /// What the embedding of a token is multiplied by (Gemma).
    pub embed_scale: f32,
    /// The function in the feed-forward part.
    pub activation: Activation,
    /// Whether what attention and the feed-forward part add is normalised first (Gemma 2 and 3).
    pub post_norms: bool,
    /// Whether queries, keys and values have biases (Qwen2).
    pub qkv_bias: bool,
    /// Whether queries and keys are normalised, head by head (Qwen3).
    pub qk_norm: bool,
    /// Whether the embedding also leads back to logits, so that there is no matrix for that.
    pub tied: bool,
}

impl Config {
    /// Whether tokens see all tokens before them in this layer, whatever the window is.
    pub fn sees_all(&self, layer: usize) -> bool {
        self.period > 0 && (layer + 1).is_multiple_of(self.period)
    }

    /// The window of a layer.
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| !self.sees_all(layer))
    }

    /// How queries and keys turn in a layer.
    pub fn rope_of(&self, layer: usize) -> RopeOptions {
        self.local_rope.filter(|_| !self.sees_all(layer)).unwrap_or(self.rope)
    }

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
        if self.post_norms {
            parts.extend(["post_attention_norm.weight", "post_ffw_norm.weight"]);
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
        let fail = |reason: String| Err(contradiction(reason));
        if self.layers > tensors {
            return fail(format!("{} layers cannot be made of {tensors} tensors", self.layers));
        }
        if !heads.is_multiple_of(kv_heads) {
            return fail(format!("{heads} query heads cannot share {kv_heads} key heads evenly"));
        }
        if rope_dim > head_dim || rope_dim == 0 || !rope_dim.is_multiple_of(2) {
            return fail(format!("{rope_dim} of {head_dim} elements of a head cannot rotate in pairs"));
        }
        let positive = |n: f32| n.is_finite() && n > 0.0;
        if !positive(self.attention_scale) {
            return fail(format!(
                "products of queries and keys cannot be scaled by {}",
                self.attention_scale
            ));
        }
        if let Some(cap) = self.attention_cap.iter().chain(&self.logit_cap).find(|cap| !positive(**cap)) {
            return fail(format!("{cap} is an impossible soft cap"));
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

fn invalid(reason: String, help: &str) -> Error {
    Error::Model { what: "model".into(), reason, help: help.into() }
}

fn contradiction(reason: String) -> Error {
    invalid(format!("the file contradicts itself: {reason}"), "convert or download the model again")
}
