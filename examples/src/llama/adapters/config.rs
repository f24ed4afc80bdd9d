//! What the configuration of an adapter says.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

/// The remedy for adapters of another kind.
pub(super) const PLAIN: &str =
    "use an adapter that PEFT saved: LoRA of linear layers, without biases or magnitudes";

/// Initialisations that leave the weights of the model as they are.
const INITIALISATIONS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// Keys that, if they are set, change what is computed, and the remedy for those that have one of their own.
const KEYS: [(&str, &str); 10] = [
    (
        "alora_invocation_tokens",
        "it adapts only the tokens behind its invocation: train it without `alora_invocation_tokens`",
    ),
    (
        "layer_replication",
        "its layers are not those of the model: merge it by PEFT's `merge_and_unload`, and use the model that this makes",
    ),
    ("arrow_config", PLAIN),
    ("kasa_config", PLAIN),
    ("monteclora_config", PLAIN),
    ("use_bdlora", PLAIN),
    ("use_qalora", PLAIN),
    ("lora_bias", PLAIN),
    ("target_parameters", PLAIN),
    ("trainable_token_indices", PLAIN),
];

/// The entries of an object in the order of the file, because of several patterns that fit the first counts.
#[derive(Debug)]
pub(super) struct Ordered<V>(pub(super) Vec<(String, V)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Ordered<V>, M::Error> {
                let mut entries: Vec<(String, V)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, V>()? {
                    // As in Python, a key that is there twice keeps its place and gets the later value.
                    match entries.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => *known = value,
                        None => entries.push((key, value)),
                    }
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// `adapter_config.json`, as far as it says what is computed.
#[derive(Debug, Deserialize)]
pub(super) struct AdapterConfig {
    peft_type: String,
    r: usize,
    pub(super) lora_alpha: f64,
    #[serde(default)]
    pub(super) use_rslora: bool,
    #[serde(default)]
    use_dora: bool,
    #[serde(default)]
    fan_in_fan_out: bool,
    #[serde(default)]
    bias: Option<String>,
    #[serde(default)]
    modules_to_save: Option<Vec<String>>,
    /// How the matrices began.
    #[serde(default)]
    init_lora_weights: Value,
    #[serde(default)]
    rank_pattern: Ordered<usize>,
    #[serde(default)]
    pub(super) alpha_pattern: Ordered<f64>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl AdapterConfig {
    /// The rank of a module.
    pub(super) fn rank_of(&self, module: &str) -> usize {
        let own =
            |end: &str| module == end || module.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
        self.rank_pattern.0.iter().find(|(end, _)| own(end)).map_or(self.r, |(_, rank)| *rank)
    }

    /// What is not computed, if there is anything, and the remedy.
    pub(super) fn unsupported(&self) -> Option<(String, &'static str)> {
        let what = if self.peft_type != "LORA" {
            format!("it is of the type `{}`, not `LORA`", self.peft_type)
        } else if self.use_dora {
            "it has magnitudes (`use_dora`)".into()
        } else if self.fan_in_fan_out {
            "its matrices are transposed (`fan_in_fan_out`)".into()
        } else if self.bias.as_ref().is_some_and(|bias| bias != "none") {
            "it has biases (`bias`)".into()
        } else if self.modules_to_save.as_ref().is_some_and(|modules| !modules.is_empty()) {
            "it replaces whole modules (`modules_to_save`)".into()
        } else if self.r == 0 {
            "its rank (`r`) is 0".into()
        } else if let Some(pattern) = self.other_pattern() {
            format!("`{pattern}` of a pattern is not the end of a module's name")
        } else {
            return self.changed_weights().or_else(|| self.other_key());
        };
        Some((what, PLAIN))
    }

    /// A pattern that is more than the end of a name.
    fn other_pattern(&self) -> Option<&str> {
        let ranks = self.rank_pattern.0.iter().map(|(pattern, _)| pattern);
        let mut patterns = ranks.chain(self.alpha_pattern.0.iter().map(|(pattern, _)| pattern));
        let is_plain = |pattern: &str| pattern.chars().all(|c| c.is_alphanumeric() || "._".contains(c));
        patterns.find(|pattern| !is_plain(pattern)).map(String::as_str)
    }

    /// An initialisation that may have changed the weights beside which the adapter was trained, as PiSSA and OLoRA do.
    fn changed_weights(&self) -> Option<(String, &'static str)> {
        let is_plain = match &self.init_lora_weights {
            Value::Null | Value::Bool(_) => true,
            Value::String(name) => INITIALISATIONS.iter().any(|known| known.eq_ignore_ascii_case(name)),
            _ => false,
        };
        if is_plain {
            return None;
        }
        Some((
            format!(
                "its `init_lora_weights` is {}, and such adapters may belong to other weights than those of the model",
                self.init_lora_weights
            ),
            "save it for the unchanged model: `save_pretrained` of PEFT with `path_initial_model_for_weight_conversion`",
        ))
    }

    /// A key that is set and changes what is computed.
    fn other_key(&self) -> Option<(String, &'static str)> {
        let is_set = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(all) => !all.is_empty(),
            Value::Object(all) => !all.is_empty(),
            _ => true,
        };
        let set = KEYS.into_iter().find(|(key, _)| self.others.get(*key).is_some_and(is_set));
        set.map(|(key, help)| (format!("its `{key}` is set, which is not computed"), help))
    }
}
