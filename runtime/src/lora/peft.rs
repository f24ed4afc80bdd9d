//! Adapters as PEFT saves them.

use std::collections::BTreeMap;

use super::{Lora, Slot};
use crate::{
    DType, Eager, Element, Error, Float, Result,
    base::dtype::from_bytes,
    bf16, f16,
    load::{HostTensor, TensorSource},
};

/// The prefix of each module's name in PEFT's files.
const PREFIX: &str = "base_model.model.";

/// An adapter as Hugging Face's PEFT saves it: `adapter_model.safetensors`, with the scales that `adapter_config.json` says.
///
/// For each adapted module, such as `model.layers.0.self_attn.q_proj`, it has the tensors `base_model.model.{module}.lora_A.weight`,
/// `[rank, in]`, and `….lora_B.weight`, `[out, rank]`, of any float type. The scale is `alpha / rank`.
pub struct Peft<'a> {
    source: &'a dyn TensorSource,
    alpha: f64,
    by_root: bool,
    /// By the last parts of modules' names.
    alphas: Vec<(String, f64)>,
}

/// The tensors of one module, as far as there are any.
#[derive(Default)]
struct Pair {
    a: Option<String>,
    b: Option<String>,
}

impl<'a> Peft<'a> {
    /// Returns the adapter in a file, with `lora_alpha` of its configuration.
    pub fn new(source: &'a dyn TensorSource, alpha: f64) -> Self {
        Self { source, alpha, by_root: false, alphas: Vec::new() }
    }

    /// Sets whether scales are `alpha / √rank`, as `use_rslora` says.
    #[must_use]
    pub fn by_root_of_rank(mut self, yes: bool) -> Self {
        self.by_root = yes;
        self
    }

    /// Sets another alpha for the modules whose names are `end`, or end with it behind a dot, as `alpha_pattern` says. Of several
    /// ends, the first counts.
    #[must_use]
    pub fn alpha_of(mut self, end: impl Into<String>, alpha: f64) -> Self {
        self.alphas.push((end.into(), alpha));
        self
    }

    /// Returns the names of the adapted modules.
    ///
    /// # Errors
    /// Returns [`Error::Load`] with every tensor that is not a matrix of this kind of adapter.
    pub fn modules(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let modules = self.pairs(&mut problems).into_keys().collect();
        self.unless(problems, modules)
    }

    /// Puts the adapter into `slot` of layers, by the names of their modules, in the order of the stream; the slot of a layer that it
    /// does not adapt is emptied. Nothing is recorded anew.
    ///
    /// # Errors
    /// Returns [`Error::Load`] with everything that does not fit, among it modules that are none of the layers; nothing was written
    /// then. Returns the errors of [`Lora::put`].
    pub fn load<'l, T: Float + 'l, N: AsRef<str>>(
        &self,
        cx: &Eager<'_>,
        slot: usize,
        layers: impl IntoIterator<Item = (N, &'l Lora<T>)>,
    ) -> Result<()> {
        let mut problems = Vec::new();
        let mut pairs = self.pairs(&mut problems);
        let mut slots = Vec::new();
        for (module, lora) in layers {
            let module = module.as_ref();
            let made = match pairs.remove(module) {
                None => lora.padded("Peft::load", slot, 0, [&[], &[]], 1.0),
                Some(pair) => self.slot(module, &pair, slot, lora),
            };
            match made {
                Ok(made) => slots.push(made),
                Err(Error::Argument { reason, .. }) => problems.push(format!("`{module}`: {reason}")),
                Err(Error::Load { problems: more, .. }) => problems.extend(more),
                Err(error) => return Err(error),
            }
        }
        problems.extend(
            pairs.into_keys().map(|module| format!("it adapts `{module}`, for which the model has no slots")),
        );
        self.unless(problems, ())?;
        slots.iter().try_for_each(|slot| slot.write(cx))
    }

    fn unless<R>(&self, problems: Vec<String>, result: R) -> Result<R> {
        if problems.is_empty() {
            return Ok(result);
        }
        Err(Error::Load { source_name: self.source.name(), problems })
    }

    /// The tensors of each module. Others are problems.
    fn pairs(&self, problems: &mut Vec<String>) -> BTreeMap<String, Pair> {
        let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
        for name in self.source.names() {
            let module = name.strip_prefix(PREFIX).unwrap_or(&name);
            let of = |matrix: &str| module.strip_suffix(matrix).map(str::to_owned);
            if let Some(module) = of(".lora_A.weight") {
                pairs.entry(module).or_default().a = Some(name);
            } else if let Some(module) = of(".lora_B.weight") {
                pairs.entry(module).or_default().b = Some(name);
            } else {
                problems.push(format!(
                    "`{name}` is neither a `lora_A.weight` nor a `lora_B.weight`; adapters of embeddings, with magnitudes (DoRA), biases \
                     or whole modules are not supported"
                ));
            }
        }
        pairs
    }

    fn slot<'l, T: Float>(
        &self,
        module: &str,
        pair: &Pair,
        slot: usize,
        lora: &'l Lora<T>,
    ) -> Result<Slot<'l, T>> {
        let ((a_shape, a), (b_shape, b)) =
            (self.matrix(module, &pair.a, 'A')?, self.matrix(module, &pair.b, 'B')?);
        let [out, width] = lora.shape();
        let rank = a_shape[0];
        if a_shape[1] != width || b_shape != [out, rank] {
            let reason = format!(
                "lora_A is {a_shape:?} and lora_B {b_shape:?}; of a layer of [{out}, {width}], they are [rank, {width}] and [{out}, rank]"
            );
            return Err(Error::Argument { op: "Peft::load", reason });
        }
        let own =
            |end: &str| module == end || module.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
        let alpha = self.alphas.iter().find(|(end, _)| own(end)).map_or(self.alpha, |(_, alpha)| *alpha);
        let rank_of = rank.max(1) as f64;
        let scale = alpha / if self.by_root { rank_of.sqrt() } else { rank_of };
        lora.padded("Peft::load", slot, rank, [&a, &b], scale)
    }

    /// The shape and the elements of a matrix.
    fn matrix(&self, module: &str, name: &Option<String>, which: char) -> Result<([usize; 2], Vec<f64>)> {
        let refuse = |reason: String| Err(Error::Argument { op: "Peft::load", reason });
        let tensor = match name {
            Some(name) => self.source.tensor(name)?,
            None => None,
        };
        let Some(tensor) = tensor else { return refuse(format!("there is no `lora_{which}.weight`")) };
        let &[rows, columns] = &tensor.shape[..] else {
            return refuse(format!(
                "lora_{which} has the shape {:?}; `{module}` is not a linear layer",
                tensor.shape
            ));
        };
        let Some(values) = floats(&tensor) else {
            return refuse(format!("lora_{which} is {}; floats are needed", tensor.dtype));
        };
        if rows.checked_mul(columns) != Some(values.len()) {
            return refuse(format!(
                "lora_{which} has {} elements, which is not what {:?} takes",
                values.len(),
                tensor.shape
            ));
        }
        Ok(([rows, columns], values))
    }
}

/// The elements of a tensor of floats.
fn floats(tensor: &HostTensor<'_>) -> Option<Vec<f64>> {
    fn of<T: Element>(bytes: &[u8]) -> Vec<f64> {
        from_bytes::<T>(bytes).into_iter().map(Element::to_f64).collect()
    }
    match tensor.dtype {
        DType::F32 => Some(of::<f32>(&tensor.bytes)),
        DType::F16 => Some(of::<f16>(&tensor.bytes)),
        DType::Bf16 => Some(of::<bf16>(&tensor.bytes)),
        _ => None,
    }
}
