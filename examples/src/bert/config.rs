//! The sizes of a BERT model, as its `config.json` gives them.

use std::path::Path;

use serde::Deserialize;

use crate::{Error, Result};

/// Sizes and constants of a BERT encoder.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Config {
    /// Width of the residual stream.
    #[serde(rename = "hidden_size")]
    pub dim: usize,
    /// Width inside the feed-forward part.
    #[serde(rename = "intermediate_size")]
    pub ffn: usize,
    /// Number of layers.
    #[serde(rename = "num_hidden_layers")]
    pub layers: usize,
    /// Attention heads.
    #[serde(rename = "num_attention_heads")]
    pub heads: usize,
    /// Positions that the model knows.
    #[serde(rename = "max_position_embeddings")]
    pub positions: usize,
    /// Number of tokens.
    #[serde(rename = "vocab_size")]
    pub vocab: usize,
    /// Kinds of segments that a token may belong to; the first is used.
    #[serde(rename = "type_vocab_size")]
    pub kinds: usize,
    /// Added to the variance in norms.
    #[serde(rename = "layer_norm_eps")]
    pub eps: f32,
    /// The function inside the feed-forward part; only `gelu` is computed.
    #[serde(rename = "hidden_act")]
    pub activation: String,
}

impl Config {
    /// Reads and checks a `config.json`.
    ///
    /// # Errors
    /// If the file cannot be read, lacks a field, or asks for what this model does not compute.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
        let invalid = |reason: String| Error::File {
            path: path.to_owned(),
            reason,
            help: "pass the `config.json` of a BERT sentence encoder, such as all-MiniLM-L6-v2".into(),
        };
        let config: Self = serde_json::from_slice(&bytes).map_err(|e| invalid(e.to_string()))?;
        let Self { dim, ffn, layers, heads, positions, vocab, kinds, eps, ref activation } = config;
        if [dim, ffn, layers, heads, positions, vocab, kinds].contains(&0) {
            return Err(invalid("a size is 0".into()));
        }
        if !dim.is_multiple_of(heads) {
            return Err(invalid(format!("a width of {dim} cannot be split into {heads} heads")));
        }
        if activation != "gelu" {
            return Err(invalid(format!("the activation is `{activation}`, and only `gelu` is computed")));
        }
        if !(eps.is_finite() && eps >= 0.0) {
            return Err(invalid(format!("the norm's epsilon {eps} is impossible")));
        }
        Ok(config)
    }
}
