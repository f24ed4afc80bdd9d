//! The sizes in the metadata of a GGUF file.

use graphable::ops::{LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig};

use super::{Activation, Config, Family, contradiction, invalid, missing};
use crate::{
    Error, Result,
    gguf::{Gguf, GgufError},
};

/// Divisors of frequencies, one of each pair, as files of Llama 3.1 have them.
pub(crate) const DIVISORS: &str = "rope_freqs.weight";
/// The base of layers with windows of Gemma 3, unless the file names another.
pub(super) const LOCAL_THETA: f32 = 10_000.0;
/// What to do about other scalings.
const HELP: &str = "use a model whose scaling is none, linear, yarn or that of Llama 3.1";

impl Config {
    /// Reads and checks the metadata of a file.
    ///
    /// # Errors
    /// For other architectures, for variants that this model does not compute, and for sizes that contradict each other.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        let architecture = file.str("general.architecture").map_err(gguf)?;
        let family = match architecture {
            "llama" => Family::Llama,
            "qwen2" => Family::Qwen2,
            "qwen3" => Family::Qwen3,
            "gemma" => Family::Gemma,
            "gemma2" => Family::Gemma2,
            "gemma3" => Family::Gemma3,
            other => {
                let reason = format!("the file's architecture is `{other}`");
                return Err(invalid(
                    reason,
                    "use a model of the architecture llama, qwen2, qwen3, gemma, gemma2 or gemma3, such as SmolLM2",
                ));
            }
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let size = |name: &str| match file.u32(&key(name)).map_err(gguf)? {
            0 => Err(contradiction(format!("`{}` is 0", key(name)))),
            n => Ok(n as usize),
        };
        let or = |name: &str, default: usize| match file.get(&key(name)) {
            None => Ok(default),
            Some(_) => size(name),
        };
        let windows = family.period() > 0;
        // Whatever the file has of these is not computed.
        let absent = ["expert_count", "attention.sliding_window", "attention.sliding_window_pattern"];
        for absent in absent.into_iter().filter(|name| !(windows && *name == "attention.sliding_window")) {
            if file.get(&key(absent)).is_some_and(|value| value.as_u64() != Some(0)) {
                let reason = format!("the file has `{}`, which this example does not compute", key(absent));
                return Err(invalid(reason, "use a dense model without it, such as SmolLM2"));
            }
        }

        let (dim, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_dim = or("attention.key_length", dim / heads)?;
        let tokens = file.strings("tokenizer.ggml.tokens").map_err(gguf)?.len();
        let (rope_dim, context) = (or("rope.dimension_count", head_dim)?, size("context_length")?);
        let (theta, rope) = rope(file, family, rope_dim, context)?;
        let number = |name: &str| match file.get(&key(name)) {
            None => Ok(None),
            Some(_) => file.f32(&key(name)).map_err(gguf).map(Some),
        };
        let layers = size("block_count")?;
        // A window as long as the context hides nothing.
        let window = match windows {
            true => Some(size("attention.sliding_window")?).filter(|n| *n < context),
            false => None,
        };
        // llama.cpp takes another scale for the largest model of each generation, which it knows by its layers.
        let by_width = matches!((family, layers), (Family::Gemma2, 46) | (Family::Gemma3, 62));
        let scale = if by_width { dim / heads } else { head_dim };
        let local_rope = match family {
            Family::Gemma3 => {
                let theta = number("rope.freq_base_swa")?.unwrap_or(LOCAL_THETA);
                Some(RopeConfig::new(theta, RopeStyle::HalfSplit).partial(rope_dim).into())
            }
            _ => None,
        };
        let config = Self {
            family,
            period: family.period(),
            local_rope,
            attention_scale: number("attention.scale")?.unwrap_or((scale as f32).sqrt().recip()),
            attention_cap: number("attn_logit_softcapping")?,
            logit_cap: number("final_logit_softcapping")?,
            embed_scale: if family.is_gemma() { (dim as f32).sqrt() } else { 1.0 },
            activation: if family.is_gemma() { Activation::GeluTanh } else { Activation::Silu },
            post_norms: matches!(family, Family::Gemma2 | Family::Gemma3),
            layers,
            dim,
            heads,
            kv_heads: or("attention.head_count_kv", heads)?,
            head_dim,
            rope,
            neighbours_turn: family == Family::Llama,
            ffn: size("feed_forward_length")?,
            eps: file.f32(&key("attention.layer_norm_rms_epsilon")).map_err(gguf)?,
            context,
            vocab: or("vocab_size", tokens)?,
            window,
            qkv_bias: family == Family::Qwen2,
            qk_norm: matches!(family, Family::Qwen3 | Family::Gemma3),
            tied: file.tensor_info("output.weight").is_none(),
        };
        config.check(file.tensor_names().len(), rope_dim, theta)?;
        let value_dim = or("attention.value_length", head_dim)?;
        if value_dim != head_dim {
            return Err(contradiction(format!("keys are {head_dim} wide and values {value_dim}")));
        }
        if tokens > config.vocab {
            return Err(contradiction(format!("there are {tokens} tokens and {} embeddings", config.vocab)));
        }
        // What the model would leave out is not what the file is for.
        let known = config.tensors();
        let used: std::collections::HashSet<_> = known.iter().map(String::as_str).chain([DIVISORS]).collect();
        if let Some(other) = file.tensor_names().find(|name| !used.contains(name)) {
            return Err(unused(other));
        }
        match missing(known.into_iter(), |name| file.tensor_info(name).is_some()) {
            Some(names) => {
                let reason = format!("the model needs {names}, which the file does not have");
                Err(invalid(reason, "download the file again, or use another one of this model"))
            }
            None => Ok(config),
        }
    }
}

/// The base, and how queries and keys turn.
fn rope(file: &Gguf, family: Family, dim: usize, context: usize) -> Result<(f32, RopeOptions)> {
    let key = |name: &str| format!("{}.rope.{name}", family.architecture());
    let theta = match file.get(&key("freq_base")) {
        None if family == Family::Gemma3 => 1_000_000.0,
        None => 10_000.0,
        Some(_) => file.f32(&key("freq_base")).map_err(gguf)?,
    };
    // In files of Llama the rows of Q and K are ordered so that neighbours pair up.
    let style = if family == Family::Llama { RopeStyle::Interleaved } else { RopeStyle::HalfSplit };
    let config = RopeConfig::new(theta, style).partial(dim);
    let scaling = key("scaling.");
    let computed = ["type", "factor", "original_context_length", "finetuned"];
    let other = |k: &&str| k.strip_prefix(scaling.as_str()).is_some_and(|k| !computed.contains(&k));
    if let Some(other) = file.keys().filter(other).min() {
        let reason = format!("the file has `{other}`, which this example does not compute");
        return Err(invalid(reason, HELP));
    }
    let factor = || {
        let name = ["scaling.factor", "scale_linear"].map(key).into_iter().find(|k| file.get(k).is_some());
        let name = name.unwrap_or_else(|| key("scaling.factor"));
        match file.f32(&name).map_err(gguf)? {
            // As llama.cpp has it.
            0.0 => Ok(1.0),
            factor if factor.is_finite() && factor > 0.0 => Ok(factor),
            factor => Err(contradiction(format!("`{name}` is {factor}"))),
        }
    };
    let kind = match file.get(&key("scaling.type")) {
        Some(_) => file.str(&key("scaling.type")).map_err(gguf)?,
        // llama.cpp takes linear scaling where no type is named.
        None if ["scaling.factor", "scale_linear"].iter().all(|name| file.get(&key(name)).is_none()) => {
            "none"
        }
        None if factor()? == 1.0 => "none",
        None => "linear",
    };
    let scaling = match (kind, file.tensor_info(DIVISORS)) {
        ("none", None) => RopeScaling::None,
        ("none", Some(info)) => {
            let none = || {
                contradiction(format!("`{DIVISORS}` is not a positive number for each of {} pairs", dim / 2))
            };
            if info.shape != [dim / 2] {
                return Err(none());
            }
            let divisors = file.tensor(DIVISORS).map_err(gguf)?.data;
            if !divisors.iter().all(|d| d.is_finite() && *d > 0.0) {
                return Err(none());
            }
            let most = u32::try_from(context).unwrap_or(u32::MAX);
            RopeScaling::LongRope(LongRopeConfig::new(&divisors, &divisors, most, most).attention_factor(1.0))
        }
        ("linear", None) => RopeScaling::Linear { factor: factor()? },
        ("yarn", None) => {
            let original = file.u32(&key("scaling.original_context_length")).map_err(gguf)?;
            RopeScaling::Yarn(YarnConfig::new(factor()?, original))
        }
        (other, divisors) => {
            let both = divisors.map_or(String::new(), |_| format!(" and by `{DIVISORS}`"));
            let reason = format!(
                "the file asks for rotary embeddings scaled by `{other}`{both}, which this example does not compute"
            );
            return Err(invalid(reason, HELP));
        }
    };
    Ok((theta, config.scaling(scaling)))
}

fn gguf(e: GgufError) -> Error {
    invalid(e.to_string(), e.help())
}

/// The error for a tensor that the model does not use.
pub(super) fn unused(name: &str) -> Error {
    let reason = format!("it has the tensor `{name}`, which the model of this example does not use");
    invalid(
        reason,
        "use a model of the families Llama, Qwen2, Qwen3, Mistral or Gemma, without adapters or additions",
    )
}
