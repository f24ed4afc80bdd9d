//! The sizes of a model as metadata of a GGUF file.

use super::{Config, Family, invalid, is_near};
use crate::{Error, Result, gguf::write::Metadata};

/// How queries and keys turn, as GGUF files say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredRope {
    /// The base.
    pub(crate) theta: f32,
    /// Elements of a head that turn.
    pub(crate) dim: usize,
    pub(crate) scaling: StoredScaling,
    /// The base in layers with windows, if it is another.
    pub(crate) local_theta: Option<f32>,
}

impl StoredRope {
    /// Writes the base and the scaling as metadata.
    fn describe(&self, key: &dyn Fn(&str) -> String, to: &mut Metadata) {
        to.f32(&key("rope.freq_base"), self.theta);
        match self.scaling {
            StoredScaling::None | StoredScaling::Divisors(_) => {}
            StoredScaling::Linear { factor } => {
                to.str(&key("rope.scaling.type"), "linear");
                to.f32(&key("rope.scaling.factor"), factor);
            }
            StoredScaling::Yarn { factor, original } => {
                to.str(&key("rope.scaling.type"), "yarn");
                to.f32(&key("rope.scaling.factor"), factor);
                to.u32(&key("rope.scaling.original_context_length"), original);
            }
        }
    }
}

/// The error for what GGUF files of an architecture have no metadata for.
fn unknown(what: &str) -> Error {
    invalid(
        format!("{what}, which a GGUF file of this architecture cannot say"),
        "use the model from its folder",
    )
}

/// How angles are scaled, as GGUF files say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredScaling {
    None,
    Linear {
        factor: f32,
    },
    Yarn {
        factor: f32,
        original: u32,
    },
    /// A divisor for each pair, in a tensor of its own.
    Divisors(Vec<f32>),
}

impl Config {
    /// Writes the sizes as metadata.
    ///
    /// # Errors
    /// If GGUF files cannot say it.
    pub(crate) fn describe(&self, rope: &StoredRope, to: &mut Metadata) -> Result<()> {
        if self.window.is_some() && self.family == Family::Llama {
            return Err(unknown("tokens see a window of others"));
        }
        self.refuse_other_defaults()?;
        let architecture = self.family.architecture();
        let key = |name: &str| format!("{architecture}.{name}");
        to.str("general.architecture", architecture);
        for (name, size) in [
            ("block_count", self.layers),
            ("context_length", self.context),
            ("embedding_length", self.dim),
            ("feed_forward_length", self.ffn),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", self.head_dim),
            ("vocab_size", self.vocab),
            ("rope.dimension_count", rope.dim),
        ] {
            let size = u32::try_from(size)
                .map_err(|_| invalid(format!("`{}` is {size}", key(name)), "use a smaller model"))?;
            to.u32(&key(name), size);
        }
        to.f32(&key("attention.layer_norm_rms_epsilon"), self.eps);
        if self.family.period() != 0 {
            if self.period != self.family.period() {
                let reason = format!("of {} layers one sees all tokens", self.period);
                return Err(unknown(&reason));
            }
            // Without one, every layer sees the context.
            let window = self.window.unwrap_or(self.context);
            to.u32(&key("attention.sliding_window"), u32::try_from(window).unwrap_or(u32::MAX));
        }
        if let Some(theta) = rope.local_theta {
            to.f32(&key("rope.freq_base_swa"), theta);
        }
        for (name, cap) in
            [("attn_logit_softcapping", self.attention_cap), ("final_logit_softcapping", self.logit_cap)]
        {
            if let Some(cap) = cap {
                to.f32(&key(name), cap);
            }
        }
        rope.describe(&key, to);
        Ok(())
    }

    /// Refuses what readers of GGUF files compute otherwise where nothing is said, and where nothing can be said.
    fn refuse_other_defaults(&self) -> Result<()> {
        let usual = self.family.attention_scale(self.layers, self.dim / self.heads, self.head_dim);
        if !is_near(self.attention_scale, usual) {
            let scale = self.attention_scale;
            let reason =
                format!("products of queries and keys are scaled by {scale}, where these sizes give {usual}");
            return Err(unknown(&reason));
        }
        let caps =
            [("attn_logit_softcapping", self.attention_cap), ("final_logit_softcapping", self.logit_cap)];
        match caps.iter().find(|(_, cap)| self.family == Family::Gemma2 && cap.is_none()) {
            Some((name, _)) => Err(unknown(&format!("`{name}` is null"))),
            None => Ok(()),
        }
    }
}
