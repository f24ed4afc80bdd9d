//! The sizes in the metadata of a GGUF file.

use graphable::ops::{LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig};

use super::{Activation, Config, Family, contradiction, invalid, is_near, missing};
use crate::{
    Error, Result,
    gguf::{Gguf, GgufError, Value},
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
        let keys = Keys { file, architecture, family: family_of(architecture)? };
        keys.refuse_others()?;
        let (config, turns) = keys.config()?;
        config.check(file.tensor_names().len(), turns.dim, turns.theta)?;
        keys.check_widths(&config)?;
        config.check_tensors(file)?;
        Ok(config)
    }

    /// Refuses a file with tensors that the model would leave out, and one without tensors that it needs.
    fn check_tensors(&self, file: &Gguf) -> Result<()> {
        let known = self.tensors();
        let used: std::collections::HashSet<_> = known.iter().map(String::as_str).chain([DIVISORS]).collect();
        if let Some(other) = file.tensor_names().find(|name| !used.contains(name)) {
            return Err(unused(other));
        }
        match missing(known.into_iter(), |name| file.tensor_info(name).is_some()) {
            Some(names) => {
                let reason = format!("the model needs {names}, which the file does not have");
                Err(invalid(reason, "download the file again, or use another one of this model"))
            }
            None => Ok(()),
        }
    }
}

fn family_of(architecture: &str) -> Result<Family> {
    Ok(match architecture {
        "llama" => Family::Llama,
        "qwen2" => Family::Qwen2,
        "qwen3" => Family::Qwen3,
        "gemma" => Family::Gemma,
        "gemma2" => Family::Gemma2,
        "gemma3" => Family::Gemma3,
        other => {
            let why = format!("the file's architecture is `{other}`");
            return Err(invalid(
                why,
                "use a model of the architecture llama, qwen2, qwen3, gemma, gemma2 or gemma3, such as SmolLM2",
            ));
        }
    })
}

/// What turns of a head, and the base.
struct Turns {
    dim: usize,
    theta: f32,
}

/// The metadata of a file, whose keys begin with the architecture.
struct Keys<'f> {
    file: &'f Gguf,
    architecture: &'f str,
    family: Family,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn size(&self, name: &str) -> Result<usize> {
        let key = self.key(name);
        match self.file.u32(&key).map_err(gguf)? {
            0 => Err(contradiction(format!("`{key}` is 0"))),
            n => Ok(n as usize),
        }
    }

    fn size_or(&self, name: &str, default: usize) -> Result<usize> {
        match self.file.get(&self.key(name)) {
            None => Ok(default),
            Some(_) => self.size(name),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f32>> {
        let key = self.key(name);
        match self.file.get(&key) {
            None => Ok(None),
            Some(_) => self.file.f32(&key).map_err(gguf).map(Some),
        }
    }

    fn tokens(&self) -> Result<usize> {
        Ok(self.file.strings("tokenizer.ggml.tokens").map_err(gguf)?.len())
    }

    fn has_windows(&self) -> bool {
        self.family.period() > 0
    }

    /// Refuses what is not computed.
    fn refuse_others(&self) -> Result<()> {
        let absent = ["expert_count", "attention.sliding_window", "attention.sliding_window_pattern"];
        let is_known = |name: &str| self.has_windows() && name == "attention.sliding_window";
        for absent in absent.into_iter().filter(|name| !is_known(name)).map(|name| self.key(name)) {
            let value = self.file.get(&absent);
            // The layers of these families that llama.cpp gives windows whatever the file says.
            let is_usual = absent.ends_with("_pattern")
                && self.has_windows()
                && value.and_then(Value::as_u64) == Some(self.family.period() as u64);
            if !is_usual && value.is_some_and(|value| value.as_u64() != Some(0)) {
                let why = format!("the file has `{absent}`, which this example does not compute");
                return Err(invalid(why, "use a dense model without it, such as SmolLM2"));
            }
        }
        let causal = self.key("attention.causal");
        if self.file.get(&causal).is_some_and(|value| *value != Value::Bool(true)) {
            let why = format!(
                "`{causal}` is not true, so tokens see those that follow, which this example does not compute"
            );
            return Err(invalid(why, "use a model that generates text, such as SmolLM2"));
        }
        Ok(())
    }

    /// The configuration, unchecked.
    fn config(&self) -> Result<(Config, Turns)> {
        let Self { file, family, .. } = *self;
        let (dim, heads) = (self.size("embedding_length")?, self.size("attention.head_count")?);
        let head_dim = self.size_or("attention.key_length", dim / heads)?;
        let tokens = self.tokens()?;
        let rope_dim = self.size_or("rope.dimension_count", head_dim)?;
        let context = self.size("context_length")?;
        let (theta, rope) = rope(file, family, rope_dim, context)?;
        let layers = self.size("block_count")?;
        let window = self.window(context)?;
        let config = Config {
            family,
            period: family.period(),
            local_rope: self.local_rope(rope_dim, theta)?,
            attention_scale: self.attention_scale(family.attention_scale(layers, dim / heads, head_dim))?,
            attention_cap: self.attention_cap()?,
            logit_cap: self.logit_cap()?,
            embed_scale: if family.is_gemma() { (dim as f32).sqrt() } else { 1.0 },
            activation: if family.is_gemma() { Activation::GeluTanh } else { Activation::Silu },
            post_norms: matches!(family, Family::Gemma2 | Family::Gemma3),
            layers,
            dim,
            heads,
            kv_heads: self.size_or("attention.head_count_kv", heads)?,
            head_dim,
            rope,
            neighbours_turn: family == Family::Llama,
            ffn: self.size("feed_forward_length")?,
            eps: file.f32(&self.key("attention.layer_norm_rms_epsilon")).map_err(gguf)?,
            context,
            vocab: self.size_or("vocab_size", tokens)?,
            window,
            qkv_bias: family == Family::Qwen2,
            qk_norm: matches!(family, Family::Qwen3 | Family::Gemma3),
            tied: file.tensor_info("output.weight").is_none(),
        };
        Ok((config, Turns { dim: rope_dim, theta }))
    }

    /// The window, unless it is as long as the context, and hides nothing. That of Gemma 2 has a default in llama.cpp.
    fn window(&self, context: usize) -> Result<Option<usize>> {
        let window = match self.family {
            Family::Gemma2 => self.size_or("attention.sliding_window", 4096)?,
            _ if self.has_windows() => self.size("attention.sliding_window")?,
            _ => return Ok(None),
        };
        Ok(Some(window).filter(|n| *n < context))
    }

    /// The soft cap of scores, by default that of llama.cpp, which reads it for Gemma 2 alone.
    fn attention_cap(&self) -> Result<Option<f32>> {
        match self.family {
            Family::Gemma2 => Ok(self.number("attn_logit_softcapping")?.or(Some(50.0))),
            _ => Ok(None),
        }
    }

    /// The soft cap of logits, likewise, which Gemma 3 may have as well: 0 is none there.
    fn logit_cap(&self) -> Result<Option<f32>> {
        match self.family {
            Family::Gemma2 => Ok(self.number("final_logit_softcapping")?.or(Some(30.0))),
            Family::Gemma3 => Ok(self.number("final_logit_softcapping")?.filter(|cap| *cap != 0.0)),
            _ => Ok(None),
        }
    }

    /// How keys turn in layers with windows, where `theta` is the base of the others.
    fn local_rope(&self, dim: usize, theta: f32) -> Result<Option<RopeOptions>> {
        if self.family == Family::Gemma2 {
            let local = self.number("rope.freq_base_swa")?;
            if let Some(local) = local.filter(|local| *local != theta) {
                let why = format!("layers with windows have the base {local}, and the others {theta}");
                return Err(invalid(why, "use a model of Gemma 2 that has one base"));
            }
        }
        if self.family != Family::Gemma3 {
            return Ok(None);
        }
        let theta = self.number("rope.freq_base_swa")?.unwrap_or(LOCAL_THETA);
        Ok(Some(RopeConfig::new(theta, RopeStyle::HalfSplit).partial(dim).into()))
    }

    /// What scores are multiplied with: `usual`, as llama.cpp has it, whatever the file says. Files that were made for another
    /// scale are refused.
    fn attention_scale(&self, usual: f32) -> Result<f32> {
        match self.number("attention.scale")? {
            Some(other) if !is_near(other, usual) => {
                let key = self.key("attention.scale");
                let why =
                    format!("`{key}` is {other}, which llama.cpp does not read, and its sizes give {usual}");
                Err(invalid(why, "use the model from the folder that it was converted from"))
            }
            _ => Ok(usual),
        }
    }

    /// Refuses values that are not as wide as keys, and more tokens than embeddings.
    fn check_widths(&self, config: &Config) -> Result<()> {
        let head_dim = config.head_dim;
        let value_dim = self.size_or("attention.value_length", head_dim)?;
        if value_dim != head_dim {
            return Err(contradiction(format!("keys are {head_dim} wide and values {value_dim}")));
        }
        let tokens = self.tokens()?;
        if tokens > config.vocab {
            return Err(contradiction(format!("there are {tokens} tokens and {} embeddings", config.vocab)));
        }
        Ok(())
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
    let is_usual = |k: &str, name: &str| {
        USUAL.iter().any(|(usual, value)| name == *usual && file.f32(k).is_ok_and(|is| is == *value))
    };
    let other = |k: &&str| {
        let name = k.strip_prefix(scaling.as_str());
        name.is_some_and(|name| !computed.contains(&name) && !is_usual(k, name))
    };
    if let Some(other) = file.keys().filter(other).min() {
        let reason = format!("the file has `{other}`, which this example does not compute");
        return Err(invalid(reason, HELP));
    }
    let scaling = match (scaling_kind(file, &key)?, file.tensor_info(DIVISORS)) {
        ("none", None) => RopeScaling::None,
        ("none", Some(_)) => RopeScaling::LongRope(by_divisors(file, dim, context)?),
        ("linear", None) => RopeScaling::Linear { factor: scaling_factor(file, &key)? },
        ("yarn", None) => {
            let original = file.u32(&key("scaling.original_context_length")).map_err(gguf)?;
            RopeScaling::Yarn(YarnConfig::new(scaling_factor(file, &key)?, original))
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

/// The keys of scaling that change nothing with these values, which llama.cpp takes where a file lacks them.
const USUAL: [(&str, f32); 5] = [
    ("attn_factor", 1.0),
    ("yarn_attn_factor", 1.0),
    ("yarn_beta_fast", 32.0),
    ("yarn_beta_slow", 1.0),
    ("yarn_log_multiplier", 0.0),
];

/// Where files have the factor of a scaling.
const FACTORS: [&str; 2] = ["scaling.factor", "scale_linear"];

/// By what rotary embeddings are scaled, for the `key`s of rotary embeddings.
fn scaling_kind<'f>(file: &'f Gguf, key: &dyn Fn(&str) -> String) -> Result<&'f str> {
    if file.get(&key("scaling.type")).is_some() {
        return file.str(&key("scaling.type")).map_err(gguf);
    }
    // llama.cpp takes linear scaling where no type is named.
    let has_factor = FACTORS.iter().any(|name| file.get(&key(name)).is_some());
    Ok(if has_factor && scaling_factor(file, key)? != 1.0 { "linear" } else { "none" })
}

/// The factor of the scaling.
fn scaling_factor(file: &Gguf, key: &dyn Fn(&str) -> String) -> Result<f32> {
    let name = FACTORS.map(key).into_iter().find(|name| file.get(name).is_some());
    let name = name.unwrap_or_else(|| key(FACTORS[0]));
    match file.f32(&name).map_err(gguf)? {
        // As llama.cpp has it.
        0.0 => Ok(1.0),
        factor if factor.is_finite() && factor > 0.0 => Ok(factor),
        factor => Err(contradiction(format!("`{name}` is {factor}"))),
    }
}

/// Frequencies with a divisor for each of the pairs of `dim` elements.
fn by_divisors(file: &Gguf, dim: usize, context: usize) -> Result<LongRopeConfig> {
    let none =
        || contradiction(format!("`{DIVISORS}` is not a positive number for each of {} pairs", dim / 2));
    if file.tensor_info(DIVISORS).is_none_or(|info| info.shape != [dim / 2]) {
        return Err(none());
    }
    let divisors = file.tensor(DIVISORS).map_err(gguf)?.data;
    if !divisors.iter().all(|d| d.is_finite() && *d > 0.0) {
        return Err(none());
    }
    let most = u32::try_from(context).unwrap_or(u32::MAX);
    Ok(LongRopeConfig::new(&divisors, &divisors, most, most).attention_factor(1.0))
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
