//! The sizes in `config.json`, as transformers writes it.

use std::{collections::HashSet, path::Path};

use graphable::ops::{LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig};
use serde::{Deserialize, Deserializer};

use super::{Activation, Config, Family, StoredRope, StoredScaling, gguf::LOCAL_THETA, missing};
use crate::{Error, Result, llama::names::hugging_face};

/// The families, as `model_type` has them.
const FAMILIES: [&str; 7] = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"];

impl Family {
    fn of_model_type(name: &str) -> Self {
        match name {
            "qwen2" => Self::Qwen2,
            "qwen3" => Self::Qwen3,
            "gemma" => Self::Gemma,
            "gemma2" => Self::Gemma2,
            "gemma3_text" => Self::Gemma3,
            _ => Self::Llama,
        }
    }
}

/// The fields that decide what is computed. Defaults are those of transformers.
#[derive(Deserialize)]
struct Fields {
    model_type: String,
    hidden_size: u32,
    intermediate_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    /// `Some(None)` is `null`, which differs from a key that is not there.
    #[serde(default, deserialize_with = "present")]
    num_key_value_heads: Option<Option<u32>>,
    head_dim: Option<u32>,
    #[serde(default = "default_eps")]
    rms_norm_eps: f32,
    max_position_embeddings: u32,
    vocab_size: u32,
    hidden_act: Option<String>,
    /// What Gemma calls it.
    hidden_activation: Option<String>,
    tie_word_embeddings: Option<bool>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default, deserialize_with = "present")]
    sliding_window: Option<Option<u32>>,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default)]
    layer_types: Option<Vec<String>>,
    /// What older files have instead.
    sliding_window_pattern: Option<usize>,
    #[serde(default)]
    use_bidirectional_attention: Option<bool>,
    query_pre_attn_scalar: Option<f32>,
    #[serde(default, deserialize_with = "present")]
    attn_logit_softcapping: Option<Option<f32>>,
    #[serde(default, deserialize_with = "present")]
    final_logit_softcapping: Option<Option<f32>>,
    rope_local_base_freq: Option<f32>,
    rope_theta: Option<f32>,
    /// Until version 4 of transformers, without the base.
    rope_scaling: Option<Rope>,
    /// From version 5 on; for some families, one for each type of layers.
    rope_parameters: Option<Ropes>,
    partial_rotary_factor: Option<f32>,
}

#[derive(Deserialize)]
struct Ropes {
    full_attention: Option<Rope>,
    sliding_attention: Option<Rope>,
    #[serde(flatten)]
    all: Rope,
}

impl Fields {
    /// How queries and keys turn, in layers that see all tokens.
    fn rope(&self) -> Option<&Rope> {
        let given = self.rope_parameters.as_ref();
        given.map(|ropes| ropes.full_attention.as_ref().unwrap_or(&ropes.all)).or(self.rope_scaling.as_ref())
    }

    /// The base in layers with windows, if it may be another.
    fn local_theta(&self) -> Result<Option<f32>, String> {
        if self.model_type != "gemma3_text" {
            return Ok(None);
        }
        let given = self.rope_parameters.as_ref().and_then(|ropes| ropes.sliding_attention.as_ref());
        match given.and_then(Rope::kind) {
            None | Some("default") => {}
            Some(kind) => return Err(format!("layers with windows scale angles by `{kind}`")),
        }
        let theta =
            given.and_then(|rope| rope.rope_theta).or(self.rope_local_base_freq).unwrap_or(LOCAL_THETA);
        if theta.is_finite() && theta > 0.0 {
            Ok(Some(theta))
        } else {
            Err(format!("a base of {theta} is impossible"))
        }
    }

    /// Refuses what is not computed.
    fn refuse_others(&self) -> Result<(), String> {
        if self.attention_bias || self.mlp_bias {
            return Err("`attention_bias` or `mlp_bias` is set, and such biases are not computed".into());
        }
        if self.use_sliding_window {
            return Err("`use_sliding_window` is set, and windows of some layers are not computed".into());
        }
        if self.use_bidirectional_attention == Some(true) {
            return Err("tokens see those that follow, which is not computed".into());
        }
        Ok(())
    }

    fn kv_heads(&self) -> u32 {
        match (self.num_key_value_heads, self.model_type.as_str()) {
            (Some(Some(kv_heads)), _) => kv_heads,
            (Some(None), _) | (None, "llama") => self.num_attention_heads,
            (None, "mistral") => 8,
            (None, "gemma") => 16,
            (None, "gemma2" | "gemma3_text") => 4,
            (None, _) => 32,
        }
    }

    fn window(&self) -> Option<u32> {
        match self.model_type.as_str() {
            "mistral" | "gemma2" | "gemma3_text" => self.sliding_window.unwrap_or(Some(4096)),
            _ => None,
        }
    }

    fn head_dim(&self) -> u32 {
        match (self.head_dim, self.model_type.as_str()) {
            (Some(width), _) => width,
            (None, "qwen3") => 128,
            (None, "gemma" | "gemma2" | "gemma3_text") => 256,
            (None, _) => self.hidden_size / self.num_attention_heads,
        }
    }

    fn has_size_zero(&self) -> bool {
        let sizes = [
            self.hidden_size,
            self.num_attention_heads,
            self.kv_heads(),
            self.intermediate_size,
            self.num_hidden_layers,
            self.vocab_size,
            self.max_position_embeddings,
        ];
        sizes.contains(&0) || self.head_dim == Some(0) || self.window() == Some(0)
    }

    /// A soft cap, which is there by default in Gemma 2.
    fn cap(&self, given: Option<Option<f32>>, default: f32) -> Option<f32> {
        match self.model_type.as_str() {
            "gemma2" => given.unwrap_or(Some(default)),
            _ => given.flatten(),
        }
    }

    /// The soft cap of scores.
    fn attention_cap(&self) -> Result<Option<f32>, String> {
        let cap = self.cap(self.attn_logit_softcapping, 50.0);
        if cap.is_some() && self.model_type != "gemma2" {
            return Err("`attn_logit_softcapping` is set, which only Gemma 2 has".into());
        }
        Ok(cap)
    }

    /// The function in the feed-forward part.
    fn activation(&self) -> Result<Activation, String> {
        let gemma = Family::of_model_type(&self.model_type).is_gemma();
        let given = if gemma {
            self.hidden_activation.as_ref().or(self.hidden_act.as_ref())
        } else {
            self.hidden_act.as_ref()
        };
        match (given.map(String::as_str), gemma) {
            (None | Some("silu"), false) => Ok(Activation::Silu),
            // The first files of Gemma say `gelu`, and mean the approximation.
            (None | Some("gelu_pytorch_tanh"), true) => Ok(Activation::GeluTanh),
            (Some("gelu"), true) if self.model_type == "gemma" => Ok(Activation::GeluTanh),
            (Some(other), gemma) => {
                let only = if gemma { "gelu_pytorch_tanh" } else { "silu" };
                Err(format!("the activation is `{other}`, and only `{only}` is computed"))
            }
        }
    }

    /// Of how many layers one sees all tokens, where the others see a window.
    fn period(&self) -> Result<usize, String> {
        let usual = Family::of_model_type(&self.model_type).period();
        if usual == 0 {
            return Ok(0);
        }
        let kind = |all: bool| if all { "full_attention" } else { "sliding_attention" };
        let Some(types) = &self.layer_types else {
            return match self.sliding_window_pattern.unwrap_or(usual) {
                0 => Err("`sliding_window_pattern` is 0".into()),
                period => Ok(period),
            };
        };
        // The first one that sees all; none does if there is none.
        let period = types.iter().position(|name| name == kind(true)).map_or(0, |i| i + 1);
        // Too few layers to tell.
        let period = if period == 0 && types.len() < usual { usual } else { period };
        let regular =
            |(i, name): (usize, &String)| name == kind(period > 0 && (i + 1).is_multiple_of(period));
        match types.len() == self.num_hidden_layers as usize && types.iter().enumerate().all(regular) {
            true => Ok(period),
            false => Err("`layer_types` are not regular".into()),
        }
    }
}

#[derive(Deserialize)]
struct Rope {
    rope_type: Option<String>,
    /// What older files call `rope_type`; many have both.
    r#type: Option<String>,
    rope_theta: Option<f32>,
    factor: Option<f32>,
    low_freq_factor: Option<f32>,
    high_freq_factor: Option<f32>,
    original_max_position_embeddings: Option<u32>,
    attention_factor: Option<f32>,
    beta_fast: Option<f32>,
    beta_slow: Option<f32>,
    truncate: Option<bool>,
    mscale: Option<f32>,
    mscale_all_dim: Option<f32>,
    short_factor: Option<Vec<f32>>,
    long_factor: Option<Vec<f32>>,
    partial_rotary_factor: Option<f32>,
}

impl Rope {
    fn kind(&self) -> Option<&str> {
        self.rope_type.as_deref().or(self.r#type.as_deref())
    }

    /// A number that a kind of scaling needs.
    fn need(&self, name: &str, value: Option<f32>) -> Result<f32, String> {
        match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => Err(format!("`{name}` of the rotary embedding is {value}")),
            None => {
                let kind = self.kind().unwrap_or("default");
                Err(format!("the rotary embedding is `{kind}` and has no `{name}`"))
            }
        }
    }

    /// How angles of `dim` elements are scaled, and how many times longer than `most` the context is.
    fn scaling(&self, dim: usize, most: u32) -> Result<(RopeScaling, f32), String> {
        if let (Some(kind), Some(other)) = (self.rope_type.as_deref(), self.r#type.as_deref())
            && kind != other
        {
            return Err(format!(
                "the rotary embedding is `{kind}` by its `rope_type` and `{other}` by its `type`"
            ));
        }
        let factor = || self.need("factor", self.factor);
        let original = self.original_max_position_embeddings.unwrap_or(most);
        let mut longer = 1.0;
        let scaling = match self.kind().unwrap_or("default") {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear { factor: factor()? },
            "dynamic" => {
                longer = factor()?.max(1.0);
                RopeScaling::DynamicNtk { factor: factor()?, original_max_position_embeddings: most }
            }
            "llama3" => RopeScaling::Llama3 {
                factor: factor()?,
                low_freq_factor: self.need("low_freq_factor", self.low_freq_factor)?,
                high_freq_factor: self.need("high_freq_factor", self.high_freq_factor)?,
                original_max_position_embeddings: original,
            },
            "yarn" => RopeScaling::Yarn(self.yarn(factor()?, original)),
            "longrope" => RopeScaling::LongRope(self.longrope(dim, original, most)?),
            other => {
                return Err(format!("the rotary embedding is scaled by `{other}`, which is not computed"));
            }
        };
        Ok((scaling, longer))
    }

    fn yarn(&self, factor: f32, original: u32) -> YarnConfig {
        let yarn = YarnConfig::new(factor, original)
            .beta(self.beta_fast.unwrap_or(32.0), self.beta_slow.unwrap_or(1.0))
            .truncate(self.truncate.unwrap_or(true));
        match (self.attention_factor, self.mscale, self.mscale_all_dim) {
            (Some(factor), ..) => yarn.attention_factor(factor),
            (None, Some(mscale), Some(all)) => yarn.mscale(mscale, all),
            _ => yarn,
        }
    }

    fn longrope(&self, dim: usize, original: u32, most: u32) -> Result<LongRopeConfig, String> {
        let (Some(short), Some(long)) = (&self.short_factor, &self.long_factor) else {
            return Err(
                "the rotary embedding is `longrope` and has no `short_factor` or `long_factor`".into()
            );
        };
        if short.len() != dim / 2 || long.len() != dim / 2 {
            return Err(format!(
                "`short_factor` or `long_factor` does not have a number for each of {} pairs",
                dim / 2
            ));
        }
        let longrope = LongRopeConfig::new(short, long, original, most);
        Ok(match self.attention_factor {
            Some(factor) => longrope.attention_factor(factor),
            None => longrope,
        })
    }

    /// Whether it has the constants of yarn that GGUF files need not name.
    fn is_plain_yarn(&self) -> bool {
        self.beta_fast.unwrap_or(32.0) == 32.0
            && self.beta_slow.unwrap_or(1.0) == 1.0
            && self.truncate.unwrap_or(true)
            && self.attention_factor.is_none()
            && (self.mscale.is_none() || self.mscale_all_dim.is_none())
    }

    /// What the frequency of each pair is divided by, for `llama3`: nothing where a wave is short, `factor` where it is long, and
    /// something in between elsewhere.
    fn divisors(&self, theta: f32, dim: usize, most: u32) -> Vec<f32> {
        let given = |value: Option<f32>| f64::from(value.unwrap_or(1.0));
        let (factor, low, high) =
            (given(self.factor), given(self.low_freq_factor), given(self.high_freq_factor));
        let original = f64::from(self.original_max_position_embeddings.unwrap_or(most));
        let divisor = |i: usize| {
            let wave = std::f64::consts::TAU * f64::from(theta).powf(2.0 * i as f64 / dim as f64);
            if wave < original / high {
                return 1.0;
            }
            if wave > original / low {
                return factor;
            }
            let smooth = (original / wave - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        };
        (0..dim / 2).map(|i| divisor(i) as f32).collect()
    }
}

/// A value that is there, even if it is `null`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

fn default_eps() -> f32 {
    1e-6
}

impl Config {
    /// Refuses families that this model does not compute, whatever else their `config.json` says.
    ///
    /// # Errors
    /// Those of [`from_json`](Self::from_json) about the family.
    pub fn family(path: &Path, text: &[u8]) -> Result<()> {
        #[derive(Deserialize)]
        struct Family {
            model_type: String,
        }
        let Family { model_type } = serde_json::from_slice(text).map_err(|e| not_a_model(path, &e))?;
        if FAMILIES.contains(&model_type.as_str()) {
            return Ok(());
        }
        Err(unsupported(path, format!("the model is of the family `{model_type}`")))
    }

    /// Reads and checks a `config.json`; errors call it `path`. The model's files have tensors with these `names`.
    ///
    /// # Errors
    /// For other families, for variants that this model does not compute, and for sizes that contradict each other.
    pub fn from_json(path: &Path, text: &[u8], names: &[String]) -> Result<Self> {
        Self::family(path, text)?;
        let at =
            |reason: String, help: &str| Error::File { path: path.to_owned(), reason, help: help.into() };
        let refuse = |reason: String| unsupported(path, reason);
        let fields: Fields = serde_json::from_slice(text).map_err(|e| not_a_model(path, &e))?;
        let kind = Family::of_model_type(&fields.model_type);
        let activation = fields.activation().map_err(refuse)?;
        fields.refuse_others().map_err(refuse)?;

        let (dim, heads, kv_heads) = (fields.hidden_size, fields.num_attention_heads, fields.kv_heads());
        let (context, window) = (fields.max_position_embeddings, fields.window());
        if fields.has_size_zero() {
            return Err(at("a size is 0".into(), "fetch it again"));
        }
        let head_dim = fields.head_dim();
        let period = fields.period().map_err(refuse)?;
        let attention_cap = fields.attention_cap().map_err(refuse)?;
        let query_scale = match kind {
            Family::Gemma2 | Family::Gemma3 => fields.query_pre_attn_scalar.unwrap_or(256.0),
            _ => head_dim as f32,
        };
        let local = fields.local_theta().map_err(refuse)?;
        let Turned { dim: rope_dim, theta, rope, longer } =
            rope(&fields, head_dim as usize).map_err(refuse)?;
        let config = Self {
            family: kind,
            period,
            local_rope: local
                .map(|theta| RopeConfig::new(theta, RopeStyle::HalfSplit).partial(rope_dim).into()),
            attention_scale: query_scale.sqrt().recip(),
            attention_cap,
            logit_cap: fields.cap(fields.final_logit_softcapping, 30.0),
            embed_scale: if kind.is_gemma() { (dim as f32).sqrt() } else { 1.0 },
            activation,
            post_norms: matches!(kind, Family::Gemma2 | Family::Gemma3),
            layers: fields.num_hidden_layers as usize,
            dim: dim as usize,
            heads: heads as usize,
            kv_heads: kv_heads as usize,
            head_dim: head_dim as usize,
            rope,
            neighbours_turn: false,
            ffn: fields.intermediate_size as usize,
            eps: fields.rms_norm_eps,
            context: (f64::from(context) * f64::from(longer)) as usize,
            vocab: fields.vocab_size as usize,
            // A window as long as the context hides nothing.
            window: window.filter(|n| *n < context).map(|n| n as usize),
            qkv_bias: kind == Family::Qwen2,
            qk_norm: matches!(kind, Family::Qwen3 | Family::Gemma3),
            tied: fields.tie_word_embeddings.unwrap_or(kind.is_gemma()),
        };
        config.check(names.len(), rope_dim, theta).map_err(|e| match e {
            Error::Model { reason, help, .. } => at(reason, &help),
            other => other,
        })?;
        config.check_names(path, names)?;
        Ok(config)
    }

    /// How queries and keys turn, by the `config.json` at `path` that was read for this model, as a GGUF file says it.
    ///
    /// # Errors
    /// If it cannot.
    pub(crate) fn stored_rope(&self, path: &Path, text: &[u8]) -> Result<StoredRope> {
        let fields: Fields = serde_json::from_slice(text).map_err(|e| not_a_model(path, &e))?;
        let Turned { dim, theta, .. } = rope(&fields, self.head_dim).map_err(|why| unsupported(path, why))?;
        let given = fields.rope();
        let local_theta = fields.local_theta().map_err(|reason| unsupported(path, reason))?;
        let kind = given.and_then(Rope::kind).unwrap_or("default");
        let refuse = |reason: String| Error::File {
            path: path.to_owned(),
            reason: format!("{reason}, which a GGUF file cannot say"),
            help: "use the model from its folder".into(),
        };
        let most = fields.max_position_embeddings;
        let scaling = match (kind, given) {
            ("linear", Some(Rope { factor: Some(factor), .. })) => StoredScaling::Linear { factor: *factor },
            ("llama3", Some(given)) => StoredScaling::Divisors(given.divisors(theta, dim, most)),
            ("yarn", Some(given @ Rope { factor: Some(factor), .. })) => {
                if !given.is_plain_yarn() {
                    return Err(refuse("`yarn` has constants of its own".into()));
                }
                let original = given.original_max_position_embeddings.unwrap_or(most);
                StoredScaling::Yarn { factor: *factor, original }
            }
            ("default", _) => StoredScaling::None,
            (other, _) => return Err(refuse(format!("the rotary embedding is scaled by `{other}`"))),
        };
        Ok(StoredRope { theta, dim, scaling, local_theta })
    }

    /// Refuses files with tensors that the model would leave out, and those without ones that are loaded only where they exist.
    fn check_names(&self, path: &Path, names: &[String]) -> Result<()> {
        let needs = || self.tensors().into_iter().map(|name| hugging_face(&name, self));
        let known: HashSet<_> = needs().collect();
        let leaves_out = |name: &&String| {
            // Some files have the frequencies, which follow from the configuration, and the matrix of tied embeddings twice.
            let follows = name.ends_with(".rotary_emb.inv_freq") || self.tied && *name == "lm_head.weight";
            !known.contains(*name) && !follows
        };
        if let Some(other) = names.iter().find(leaves_out) {
            return Err(unsupported(
                path,
                format!("the weights have `{other}`, which the model does not use"),
            ));
        }
        let given: HashSet<_> = names.iter().map(String::as_str).collect();
        match missing(needs(), |name| given.contains(name)) {
            Some(names) => Err(Error::File {
                path: path.to_owned(),
                reason: format!("the model needs {names}, which the weights do not have"),
                help: "fetch the complete files of one model".into(),
            }),
            None => Ok(()),
        }
    }
}

fn unsupported(path: &Path, reason: String) -> Error {
    let help = "use a dense model of the families Llama, Qwen2, Qwen3, Mistral or Gemma (of text)";
    Error::File { path: path.to_owned(), reason, help: help.into() }
}

fn not_a_model(path: &Path, error: &serde_json::Error) -> Error {
    let help = "use the `config.json` of a language model, or fetch it again";
    Error::File { path: path.to_owned(), reason: error.to_string(), help: help.into() }
}

/// How queries and keys turn.
struct Turned {
    /// Elements of a head that turn.
    dim: usize,
    theta: f32,
    rope: RopeOptions,
    /// How many times longer than `max_position_embeddings` the context is.
    longer: f32,
}

fn rope(fields: &Fields, head_dim: usize) -> Result<Turned, String> {
    let given = fields.rope();
    let usual = if fields.model_type == "gemma3_text" { 1_000_000.0 } else { 10_000.0 };
    let theta = given.and_then(|rope| rope.rope_theta).or(fields.rope_theta).unwrap_or(usual);
    let part =
        given.and_then(|rope| rope.partial_rotary_factor).or(fields.partial_rotary_factor).unwrap_or(1.0);
    let dim = (head_dim as f32 * part) as usize;
    let config = RopeConfig::new(theta, RopeStyle::HalfSplit).partial(dim);
    let Some(given) = given else { return Ok(Turned { dim, theta, rope: config.into(), longer: 1.0 }) };
    let (scaling, longer) = given.scaling(dim, fields.max_position_embeddings)?;
    Ok(Turned { dim, theta, rope: config.scaling(scaling), longer })
}
