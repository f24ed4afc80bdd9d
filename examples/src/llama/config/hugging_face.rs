//! The sizes in `config.json`, as transformers writes it.

use std::{collections::HashSet, path::Path};

use graphable::ops::{LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig};
use serde::{Deserialize, Deserializer};

use super::{Config, missing};
use crate::{Error, Result, llama::names::hugging_face};

/// The families, as `model_type` has them.
const FAMILIES: [&str; 4] = ["llama", "mistral", "qwen2", "qwen3"];

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
    #[serde(default = "default_activation")]
    hidden_act: String,
    #[serde(default)]
    tie_word_embeddings: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default, deserialize_with = "present")]
    sliding_window: Option<Option<u32>>,
    #[serde(default)]
    use_sliding_window: bool,
    rope_theta: Option<f32>,
    /// Until version 4 of transformers, without the base.
    rope_scaling: Option<Rope>,
    /// From version 5 on.
    rope_parameters: Option<Rope>,
    partial_rotary_factor: Option<f32>,
    /// A model in blocks of another method than this one reads.
    quantization_config: Option<serde_json::Value>,
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

/// A value that is there, even if it is `null`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

fn default_eps() -> f32 {
    1e-6
}

fn default_activation() -> String {
    "silu".into()
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
        let at = |why: String, help: &str| Error::File { path: path.to_owned(), why, help: help.into() };
        let refuse = |why: String| unsupported(path, why);
        let fields: Fields = serde_json::from_slice(text).map_err(|e| not_a_model(path, &e))?;
        let family = fields.model_type.as_str();
        if fields.hidden_act != "silu" {
            return Err(refuse(format!(
                "the activation is `{}`, and only `silu` is computed",
                fields.hidden_act
            )));
        }
        if fields.attention_bias || fields.mlp_bias {
            return Err(refuse(
                "`attention_bias` or `mlp_bias` is set, and such biases are not computed".into(),
            ));
        }
        if fields.use_sliding_window {
            return Err(refuse(
                "`use_sliding_window` is set, and windows of some layers are not computed".into(),
            ));
        }
        if let Some(method) = &fields.quantization_config {
            let method = method.get("quant_method").and_then(|m| m.as_str()).unwrap_or("unknown");
            return Err(refuse(format!("the weights are quantised by the method `{method}`")));
        }

        let (dim, heads) = (fields.hidden_size, fields.num_attention_heads);
        let context = fields.max_position_embeddings;
        let kv_heads = match (fields.num_key_value_heads, family) {
            (Some(Some(kv_heads)), _) => kv_heads,
            (Some(None), _) | (None, "llama") => heads,
            (None, "mistral") => 8,
            (None, _) => 32,
        };
        let window = match (fields.sliding_window, family) {
            (given, "mistral") => given.unwrap_or(Some(4096)),
            _ => None,
        };
        let all =
            [dim, heads, kv_heads, fields.intermediate_size, fields.num_hidden_layers, fields.vocab_size];
        if all.contains(&0) || context == 0 || fields.head_dim == Some(0) || window == Some(0) {
            return Err(at("a size is 0".into(), "fetch it again"));
        }
        let head_dim = match (fields.head_dim, family) {
            (Some(width), _) => width,
            (None, "qwen3") => 128,
            (None, _) => dim / heads,
        };
        let (rope_dim, theta, rope, longer) = rope(&fields, head_dim as usize).map_err(refuse)?;
        // A window as long as the context hides nothing.
        let window = window.filter(|n| *n < context);
        let config = Self {
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
            window: window.map(|n| n as usize),
            qkv_bias: family == "qwen2",
            qk_norm: family == "qwen3",
            tied: fields.tie_word_embeddings,
        };
        config.check(names.len(), rope_dim, theta).map_err(|e| match e {
            Error::Model { why, help, .. } => at(why, &help),
            other => other,
        })?;
        config.check_names(path, names)?;
        Ok(config)
    }

    /// Refuses files with tensors that the model would leave out, and those without ones that are loaded only where they exist.
    fn check_names(&self, path: &Path, names: &[String]) -> Result<()> {
        let needs = || self.tensors().into_iter().map(|name| hugging_face(&name, self.tied));
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
                why: format!("the model needs {names}, which the weights do not have"),
                help: "fetch the complete files of one model".into(),
            }),
            None => Ok(()),
        }
    }
}

fn unsupported(path: &Path, why: String) -> Error {
    let help = "use a dense model of the families Llama, Qwen2, Qwen3 or Mistral, with weights as floats";
    Error::File { path: path.to_owned(), why, help: help.into() }
}

fn not_a_model(path: &Path, error: &serde_json::Error) -> Error {
    let help = "use the `config.json` of a language model, or fetch it again";
    Error::File { path: path.to_owned(), why: error.to_string(), help: help.into() }
}

/// The elements of a head that turn, the base, how they turn, and how many times longer than `max_position_embeddings` the
/// context is.
fn rope(fields: &Fields, head_dim: usize) -> Result<(usize, f32, RopeOptions, f32), String> {
    let given = fields.rope_parameters.as_ref().or(fields.rope_scaling.as_ref());
    let theta = given.and_then(|rope| rope.rope_theta).or(fields.rope_theta).unwrap_or(10_000.0);
    let part =
        given.and_then(|rope| rope.partial_rotary_factor).or(fields.partial_rotary_factor).unwrap_or(1.0);
    let dim = (head_dim as f32 * part) as usize;
    let config = RopeConfig::new(theta, RopeStyle::HalfSplit).partial(dim);
    let Some(rope) = given else { return Ok((dim, theta, config.into(), 1.0)) };
    let kind = match (rope.rope_type.as_deref(), rope.r#type.as_deref()) {
        (Some(kind), Some(other)) if kind != other => {
            return Err(format!(
                "the rotary embedding is `{kind}` by its `rope_type` and `{other}` by its `type`"
            ));
        }
        (kind, older) => kind.or(older).unwrap_or("default"),
    };
    let most = fields.max_position_embeddings;
    let need = |name: &str, value: Option<f32>| match value {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => Err(format!("`{name}` of the rotary embedding is {value}")),
        None => Err(format!("the rotary embedding is `{kind}` and has no `{name}`")),
    };
    let factor = || need("factor", rope.factor);
    let original = rope.original_max_position_embeddings;
    let mut longer = 1.0;
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: factor()? },
        "dynamic" => {
            longer = factor()?.max(1.0);
            RopeScaling::DynamicNtk { factor: factor()?, original_max_position_embeddings: most }
        }
        "llama3" => RopeScaling::Llama3 {
            factor: factor()?,
            low_freq_factor: need("low_freq_factor", rope.low_freq_factor)?,
            high_freq_factor: need("high_freq_factor", rope.high_freq_factor)?,
            original_max_position_embeddings: original.unwrap_or(most),
        },
        "yarn" => {
            let mut yarn = YarnConfig::new(factor()?, original.unwrap_or(most));
            yarn = yarn.beta(rope.beta_fast.unwrap_or(32.0), rope.beta_slow.unwrap_or(1.0));
            yarn = yarn.truncate(rope.truncate.unwrap_or(true));
            if let Some(factor) = rope.attention_factor {
                yarn = yarn.attention_factor(factor);
            } else if let (Some(mscale), Some(all)) = (rope.mscale, rope.mscale_all_dim) {
                yarn = yarn.mscale(mscale, all);
            }
            RopeScaling::Yarn(yarn)
        }
        "longrope" => {
            let (Some(short), Some(long)) = (&rope.short_factor, &rope.long_factor) else {
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
            let longrope = LongRopeConfig::new(short, long, original.unwrap_or(most), most);
            RopeScaling::LongRope(match rope.attention_factor {
                Some(factor) => longrope.attention_factor(factor),
                None => longrope,
            })
        }
        other => return Err(format!("the rotary embedding is scaled by `{other}`, which is not computed")),
    };
    Ok((dim, theta, config.scaling(scaling), longer))
}
