//! How queries and keys turn, by a `config.json`.

use std::path::Path;

use graphable::ops::{LongRopeConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle, YarnConfig};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Config, StoredRope, StoredScaling,
    gguf::LOCAL_THETA,
    hugging_face::{not_a_model, unsupported},
};
use crate::{Error, Result};

/// The kinds of layers that have a rotary embedding each, in Gemma 3.
const KINDS: [&str; 2] = ["full_attention", "sliding_attention"];

/// The fields about rotary embeddings.
#[derive(Deserialize)]
pub(super) struct RopeFields {
    model_type: String,
    max_position_embeddings: u32,
    /// What Phi-3 has here, and others in one of the objects.
    original_max_position_embeddings: Option<u32>,
    rope_theta: Option<f32>,
    rope_local_base_freq: Option<f32>,
    partial_rotary_factor: Option<f32>,
    /// Until version 4 of transformers, without the base.
    rope_scaling: Option<Map<String, Value>>,
    /// From version 5 on; for some families, one for each kind of layers.
    rope_parameters: Option<Map<String, Value>>,
}

/// How queries and keys turn.
pub(super) struct Turned {
    /// The base in layers that see all tokens.
    pub(super) theta: f32,
    pub(super) rope: RopeOptions,
    /// The base in layers with windows, if it may be another.
    pub(super) local_theta: Option<f32>,
    /// How many times longer than `max_position_embeddings` the context is.
    pub(super) longer: f32,
}

impl RopeFields {
    /// The fields in the text of the `config.json` at `path`.
    pub(super) fn read(path: &Path, text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).map_err(|e| not_a_model(path, &e))
    }

    /// How heads of `dim` elements turn.
    pub(super) fn turned(&self, dim: usize) -> Result<Turned, String> {
        let rope = self.rope()?;
        let (scaling, longer) = rope.scaling(dim, self.max_position_embeddings)?;
        let theta = rope.theta();
        let config = RopeConfig::new(theta, RopeStyle::HalfSplit).partial(dim);
        Ok(Turned { theta, rope: config.scaling(scaling), local_theta: self.local_theta()?, longer })
    }

    fn is_gemma_3(&self) -> bool {
        self.model_type == "gemma3_text"
    }

    /// What counts in layers that see all tokens, with its base and the positions of the first training.
    fn rope(&self) -> Result<Rope, String> {
        let mut rope = if self.is_gemma_3() { self.of_gemma_3()? } else { self.of_all_layers()? };
        // Elements that do not turn are computed by none of these families: transformers ignores the factor, or fails.
        match rope.partial_rotary_factor.or(self.partial_rotary_factor) {
            None | Some(1.0) => {}
            Some(part) => {
                return Err(format!(
                    "`partial_rotary_factor` is {part}, and models of this family turn whole heads"
                ));
            }
        }
        let usual = if self.is_gemma_3() { 1_000_000.0 } else { 10_000.0 };
        rope.rope_theta = rope.rope_theta.or(self.rope_theta).or(Some(usual));
        // What stands outside has priority, unless there is an object for each kind of layers.
        let outside = self.original_max_position_embeddings.filter(|_| !self.is_gemma_3());
        let inside = rope.original_max_position_embeddings;
        rope.original_max_position_embeddings = outside.or(inside).or(Some(self.max_position_embeddings));
        Ok(rope)
    }

    /// What is said of layers that are all alike: by `rope_scaling`, if it says something, instead of `rope_parameters`.
    fn of_all_layers(&self) -> Result<Rope, String> {
        let parameters = self.rope_parameters.clone().unwrap_or_default();
        let scaling = self.rope_scaling.clone().unwrap_or_default();
        if let Some(kind) = KINDS.iter().find(|kind| [&parameters, &scaling].iter().any(|all| has(all, kind)))
        {
            return Err(format!("the rotary embedding has a `{kind}`, which only Gemma 3 has"));
        }
        let parameters = Rope::read("rope_parameters", parameters)?;
        if scaling.is_empty() {
            return Ok(parameters);
        }
        let scaling = Rope::read("rope_scaling", scaling)?;
        // transformers takes the usual base here, which nobody who adds a scaling to a model with another one can mean.
        let theta = scaling.rope_theta.or(self.rope_theta).unwrap_or(10_000.0);
        match parameters.rope_theta {
            Some(other) if other != theta => Err(format!(
                "the base is {theta} by `rope_scaling` and {other} by `rope_parameters`, of which only the first counts: give \
                 `rope_scaling` the `rope_theta` that is right"
            )),
            _ => Ok(scaling),
        }
    }

    /// What is said of layers that see all tokens: by `full_attention`, to which `rope_scaling` adds.
    fn of_gemma_3(&self) -> Result<Rope, String> {
        let parameters = self.rope_parameters.clone().unwrap_or_default();
        if let Some(other) =
            parameters.keys().find(|key| !KINDS.contains(&key.as_str()) && has(&parameters, key))
        {
            return Err(format!(
                "`rope_parameters` has `{other}` beside `full_attention` and `sliding_attention`, where Gemma 3 ignores it"
            ));
        }
        let mut full = match parameters.get(KINDS[0]) {
            None | Some(Value::Null) => Map::from_iter([("rope_type".into(), "default".into())]),
            Some(Value::Object(given)) => given.clone(),
            Some(_) => return Err("`full_attention` of `rope_parameters` is not an object".into()),
        };
        full.extend(self.rope_scaling.clone().unwrap_or_default());
        Rope::read("rope_parameters", full)
    }

    /// The base in layers with windows, if it may be another.
    fn local_theta(&self) -> Result<Option<f32>, String> {
        if !self.is_gemma_3() {
            return Ok(None);
        }
        let given = match self.rope_parameters.as_ref().and_then(|all| all.get(KINDS[1])) {
            None | Some(Value::Null) => Rope::default(),
            Some(Value::Object(given)) => Rope::read("rope_parameters", given.clone())?,
            Some(_) => return Err("`sliding_attention` of `rope_parameters` is not an object".into()),
        };
        match given.kind() {
            "default" => {}
            kind => return Err(format!("layers with windows scale angles by `{kind}`")),
        }
        if let Some(part) = given.partial_rotary_factor.filter(|part| *part != 1.0) {
            return Err(format!("`partial_rotary_factor` is {part} in layers with windows"));
        }
        let theta = given.rope_theta.or(self.rope_local_base_freq).unwrap_or(LOCAL_THETA);
        if theta.is_finite() && theta > 0.0 {
            Ok(Some(theta))
        } else {
            Err(format!("a base of {theta} is impossible"))
        }
    }
}

/// Whether an object has a key that is not `null`.
fn has(all: &Map<String, Value>, key: &str) -> bool {
    all.get(key).is_some_and(|value| !value.is_null())
}

/// What one of the objects says.
#[derive(Default, Deserialize)]
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
    /// What the object `key` says.
    fn read(key: &str, given: Map<String, Value>) -> Result<Self, String> {
        serde_json::from_value(Value::Object(given)).map_err(|e| format!("`{key}`: {e}"))
    }

    fn kind(&self) -> &str {
        self.rope_type.as_deref().or(self.r#type.as_deref()).unwrap_or("default")
    }

    /// The base, of which [`RopeFields::rope`] has found one.
    fn theta(&self) -> f32 {
        self.rope_theta.unwrap_or(10_000.0)
    }

    /// The positions of the first training, if they are not the `most` of the model.
    fn original(&self, most: u32) -> u32 {
        self.original_max_position_embeddings.unwrap_or(most)
    }

    /// The constants of `yarn` that scale attention, if both are there; 0 is none, as in transformers.
    fn mscales(&self) -> Option<(f32, f32)> {
        Some((there(self.mscale)?, there(self.mscale_all_dim)?))
    }

    /// A number that a kind of scaling needs.
    fn need(&self, name: &str, value: Option<f32>) -> Result<f32, String> {
        match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => Err(format!("`{name}` of the rotary embedding is {value}")),
            None => Err(format!("the rotary embedding is `{}` and has no `{name}`", self.kind())),
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
        let original = self.original(most);
        let mut longer = 1.0;
        let scaling = match self.kind() {
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
            .beta(there(self.beta_fast).unwrap_or(32.0), there(self.beta_slow).unwrap_or(1.0))
            .truncate(self.truncate.unwrap_or(true));
        match (self.attention_factor, self.mscales()) {
            (Some(factor), _) => yarn.attention_factor(factor),
            (None, Some((mscale, all))) => yarn.mscale(mscale, all),
            (None, None) => yarn,
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
        Ok(match (self.attention_factor, self.factor) {
            (Some(factor), _) => longrope.attention_factor(factor),
            // Attention is scaled for a context that is longer by this factor, whatever the lengths are.
            (None, Some(_)) => {
                let (factor, first) = (self.need("factor", self.factor)?, f64::from(original));
                let longer = f64::from(factor).max(1.0).ln() / first.ln();
                longrope.attention_factor((1.0 + longer).sqrt() as f32)
            }
            (None, None) => longrope,
        })
    }

    /// Whether it has the constants of yarn that GGUF files need not name.
    fn is_plain_yarn(&self) -> bool {
        there(self.beta_fast).unwrap_or(32.0) == 32.0
            && there(self.beta_slow).unwrap_or(1.0) == 1.0
            && self.truncate.unwrap_or(true)
            && self.attention_factor.is_none()
            && self.mscales().is_none()
    }

    /// What the frequency of each pair is divided by, for `llama3`: nothing where a wave is short, `factor` where it is long, and
    /// something in between elsewhere.
    fn divisors(&self, theta: f32, dim: usize, most: u32) -> Vec<f32> {
        let given = |value: Option<f32>| f64::from(value.unwrap_or(1.0));
        let (factor, low, high) =
            (given(self.factor), given(self.low_freq_factor), given(self.high_freq_factor));
        let original = f64::from(self.original(most));
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

/// A number that is there: 0 says nothing.
fn there(value: Option<f32>) -> Option<f32> {
    value.filter(|value| *value != 0.0)
}

impl Config {
    /// How queries and keys turn, by the `config.json` at `path` that was read for this model, as a GGUF file says it.
    ///
    /// # Errors
    /// If it cannot.
    pub(crate) fn stored_rope(&self, path: &Path, text: &[u8]) -> Result<StoredRope> {
        let fields = RopeFields::read(path, text)?;
        let unsupported = |reason: String| unsupported(path, reason);
        let given = fields.rope().map_err(unsupported)?;
        let local_theta = fields.local_theta().map_err(unsupported)?;
        let (theta, dim) = (given.theta(), self.head_dim);
        let refuse = |reason: String| Error::File {
            path: path.to_owned(),
            reason: format!("{reason}, which a GGUF file cannot say"),
            help: "use the model from its folder".into(),
        };
        let most = fields.max_position_embeddings;
        let scaling = match (given.kind(), given.factor) {
            ("linear", Some(factor)) => StoredScaling::Linear { factor },
            ("llama3", Some(_)) => StoredScaling::Divisors(given.divisors(theta, dim, most)),
            ("yarn", Some(factor)) => {
                if !given.is_plain_yarn() {
                    return Err(refuse("`yarn` has constants of its own".into()));
                }
                StoredScaling::Yarn { factor, original: given.original(most) }
            }
            ("default", _) => StoredScaling::None,
            (other, _) => return Err(refuse(format!("the rotary embedding is scaled by `{other}`"))),
        };
        Ok(StoredRope { theta, dim, scaling, local_theta })
    }
}
