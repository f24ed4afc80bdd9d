//! The sizes of a Llama model, as its file gives them.

use crate::{
    Error, Result,
    gguf::{Gguf, GgufError},
};

/// Sizes and constants of a model of the Llama architecture.
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
    /// Elements of a head that rotate with the position.
    pub rope_dim: usize,
    /// Base of the rotation's frequencies.
    pub theta: f32,
    /// Width inside the feed-forward part.
    pub ffn: usize,
    /// Added to the mean square in norms.
    pub eps: f32,
    /// Positions that the model was trained for.
    pub context: usize,
    /// Number of tokens.
    pub vocab: usize,
}

impl Config {
    /// Reads and checks the metadata of a file.
    ///
    /// # Errors
    /// For other architectures, for variants of Llama that this model does not compute (scaled
    /// rotations), and for sizes that contradict each other.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        let gguf = |e: GgufError| invalid(e.to_string(), e.help());
        let architecture = file.str("general.architecture").map_err(gguf)?;
        if architecture != "llama" {
            let why = format!("the file's architecture is `{architecture}`");
            return Err(invalid(why, "use a model of the Llama architecture, such as SmolLM2"));
        }
        let scaling = file.get("llama.rope.scaling.type").and_then(|v| v.as_str()).unwrap_or("none");
        if scaling != "none" || file.tensor_info("rope_freqs.weight").is_some() {
            let why = "the file asks for scaled rotary embeddings, which this example does not compute";
            return Err(invalid(why.into(), "use a model without rope scaling, such as SmolLM2"));
        }
        let size = |key: &str| match file.u32(&format!("llama.{key}")).map_err(gguf)? {
            0 => Err(contradiction(format!("`llama.{key}` is 0"))),
            n => Ok(n as usize),
        };
        let or = |key: &str, default: usize| match file.get(&format!("llama.{key}")) {
            None => Ok(default),
            Some(_) => size(key),
        };
        let number = |key: &str, default: Option<f32>| match default {
            Some(v) if file.get(key).is_none() => Ok(v),
            _ => file.f32(key).map_err(gguf),
        };

        let (dim, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_dim = or("attention.key_length", dim / heads)?;
        let vocab = file.strings("tokenizer.ggml.tokens").map_err(gguf)?.len();
        let config = Self {
            layers: size("block_count")?,
            dim,
            heads,
            kv_heads: or("attention.head_count_kv", heads)?,
            head_dim,
            rope_dim: or("rope.dimension_count", head_dim)?,
            theta: number("llama.rope.freq_base", Some(10_000.0))?,
            ffn: size("feed_forward_length")?,
            eps: number("llama.attention.layer_norm_rms_epsilon", None)?,
            context: size("context_length")?,
            vocab: or("vocab_size", vocab)?,
        };
        config.check(file.tensor_names().len(), vocab, or("attention.value_length", head_dim)?)?;
        Ok(config)
    }

    fn check(&self, tensors: usize, tokens: usize, value_dim: usize) -> Result<()> {
        let Self { heads, kv_heads, head_dim, rope_dim, theta, eps, vocab, .. } = *self;
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
        if value_dim != head_dim {
            return fail(format!("keys are {head_dim} wide and values {value_dim}"));
        }
        if !(theta.is_finite() && theta > 0.0 && eps.is_finite() && eps >= 0.0) {
            return fail(format!("the rotation's base {theta} or the norm's epsilon {eps} is impossible"));
        }
        if tokens > vocab {
            return fail(format!("there are {tokens} tokens and {vocab} embeddings"));
        }
        Ok(())
    }
}

fn invalid(why: String, help: &str) -> Error {
    Error::Model { what: "model".into(), why, help: help.into() }
}

fn contradiction(why: String) -> Error {
    invalid(format!("the file contradicts itself: {why}"), "convert or download the model again")
}
