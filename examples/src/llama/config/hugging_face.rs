//! The sizes in `config.json`, as transformers writes it.

use std::{collections::HashSet, path::Path};

use graphable::ops::{RopeConfig, RopeStyle};
use serde::{Deserialize, Deserializer};

use super::{
    Activation, Config, Family, missing,
    rope::{RopeFields, Turned},
};
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
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    sliding_window: Option<Option<u32>>,
    use_sliding_window: Option<bool>,
    /// The first layer with a window, of Qwen.
    max_window_layers: Option<u32>,
    layer_types: Option<Vec<String>>,
    /// What older files of Gemma 3 have instead.
    sliding_window_pattern: Option<usize>,
    use_bidirectional_attention: Option<bool>,
    /// `null` is not true, either.
    #[serde(default, deserialize_with = "present")]
    is_causal: Option<Option<bool>>,
    query_pre_attn_scalar: Option<f32>,
    #[serde(default, deserialize_with = "present")]
    attn_logit_softcapping: Option<Option<f32>>,
    #[serde(default, deserialize_with = "present")]
    final_logit_softcapping: Option<Option<f32>>,
}

impl Fields {
    /// Refuses what is not computed.
    fn refuse_others(&self) -> Result<(), String> {
        if self.attention_bias == Some(true) || self.mlp_bias == Some(true) {
            return Err("`attention_bias` or `mlp_bias` is set, and such biases are not computed".into());
        }
        if self.has_windows_of_qwen() {
            return Err("`use_sliding_window` or `layer_types` gives some layers a window, which is not computed for Qwen".into());
        }
        if self.use_bidirectional_attention == Some(true) {
            return Err("tokens see those that follow, which is not computed".into());
        }
        if !matches!(self.is_causal, None | Some(Some(true))) {
            return Err(
                "`is_causal` is not true, so tokens see those that follow, which is not computed".into()
            );
        }
        Ok(())
    }

    /// Whether a layer of Qwen has a window. Other families do not read `use_sliding_window`.
    fn has_windows_of_qwen(&self) -> bool {
        if !matches!(self.model_type.as_str(), "qwen2" | "qwen3") {
            return false;
        }
        match &self.layer_types {
            Some(types) => types.iter().any(|name| name == "sliding_attention"),
            None => {
                let has_window = self.use_sliding_window == Some(true) && self.sliding_window != Some(None);
                has_window && self.max_window_layers.unwrap_or(28) < self.num_hidden_layers
            }
        }
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

    /// The soft cap of scores, which is there by default in Gemma 2. Families without soft caps do not read it.
    fn attention_cap(&self) -> Result<Option<f32>, String> {
        match self.model_type.as_str() {
            "gemma2" => Ok(self.attn_logit_softcapping.unwrap_or(Some(50.0))),
            "gemma3_text" if self.attn_logit_softcapping.flatten().is_some() => {
                Err("`attn_logit_softcapping` is set, which only Gemma 2 has".into())
            }
            _ => Ok(None),
        }
    }

    /// The soft cap of logits, likewise.
    fn logit_cap(&self) -> Option<f32> {
        match self.model_type.as_str() {
            "gemma2" => self.final_logit_softcapping.unwrap_or(Some(30.0)),
            "gemma3_text" => self.final_logit_softcapping.flatten(),
            _ => None,
        }
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
        // Mistral with types of layers is what transformers calls Ministral.
        let has_types = matches!(self.model_type.as_str(), "mistral" | "gemma2" | "gemma3_text");
        let Some(types) = self.layer_types.as_ref().filter(|_| has_types) else {
            let pattern = self.sliding_window_pattern.filter(|_| self.model_type == "gemma3_text");
            return match pattern.unwrap_or(usual) {
                0 if usual > 0 => Err("`sliding_window_pattern` is 0".into()),
                period => Ok(period),
            };
        };
        let kind = |all: bool| if all { "full_attention" } else { "sliding_attention" };
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
        let Turned { theta, rope, local_theta, longer } =
            RopeFields::read(path, text)?.turned(head_dim as usize).map_err(refuse)?;
        let context = (f64::from(fields.max_position_embeddings) * f64::from(longer)) as usize;
        let config = Self {
            family: kind,
            period,
            local_rope: local_theta
                .map(|theta| RopeConfig::new(theta, RopeStyle::HalfSplit).partial(head_dim as usize).into()),
            attention_scale: query_scale.sqrt().recip(),
            attention_cap,
            logit_cap: fields.logit_cap(),
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
            context,
            vocab: fields.vocab_size as usize,
            // A window as long as the context hides nothing, and so does one that no layer has.
            window: fields.window().map(|n| n as usize).filter(|n| *n < context && period != 1),
            qkv_bias: kind == Family::Qwen2,
            qk_norm: matches!(kind, Family::Qwen3 | Family::Gemma3),
            tied: fields.tie_word_embeddings.unwrap_or(kind.is_gemma()),
        };
        config.check(names.len(), head_dim as usize, theta).map_err(|e| match e {
            Error::Model { reason, help, .. } => at(reason, &help),
            other => other,
        })?;
        config.check_names(path, names)?;
        Ok(config)
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

pub(super) fn unsupported(path: &Path, reason: String) -> Error {
    let help = "use a dense model of the families Llama, Qwen2, Qwen3, Mistral or Gemma (of text)";
    Error::File { path: path.to_owned(), reason, help: help.into() }
}

pub(super) fn not_a_model(path: &Path, error: &serde_json::Error) -> Error {
    let help = "use the `config.json` of a language model, or fetch it again";
    Error::File { path: path.to_owned(), reason: error.to_string(), help: help.into() }
}
