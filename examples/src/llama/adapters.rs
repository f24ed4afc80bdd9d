//! Adapters of the model (LoRA): slots beside the matrices of its layers, and files that PEFT saved.

mod config;

use std::{borrow::Cow, path::Path};

use graphable::{
    load::{HostTensor, SafeTensors, TensorSource},
    lora::{self, Lora, NO_ADAPTER, Peft, Room},
    ops::MoeRoutes,
    prelude::*,
};

use self::config::{AdapterConfig, PLAIN};
use super::{Config, hugging_face_name};
use crate::Error;

/// Slots of the matrices of one layer; `None` where the model has none for adapters.
#[derive(Params)]
pub(super) struct LayerAdapters<T: Float> {
    pub(super) q: Option<Lora<T>>,
    pub(super) k: Option<Lora<T>>,
    pub(super) v: Option<Lora<T>>,
    pub(super) o: Option<Lora<T>>,
    pub(super) gate: Option<Lora<T>>,
    pub(super) up: Option<Lora<T>>,
    pub(super) down: Option<Lora<T>>,
}

/// Slots for adapters, and which of them answers. Loading an adapter and choosing one records nothing.
#[derive(Params)]
pub struct Adapters<T: Float = f32> {
    pub(super) layers: Vec<LayerAdapters<T>>,
    /// The slot whose adapter answers, `[1]`; without it there are no slots.
    slot: Option<Param<u32>>,
    #[config]
    slots: usize,
    #[config]
    rank: usize,
}

/// A matrix of a layer by its name in GGUF files.
const MATRICES: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

/// What PEFT calls a matrix of a layer.
fn module(config: &Config, layer: usize, matrix: &str) -> String {
    let name = hugging_face_name(&format!("blk.{layer}.{matrix}.weight"), config);
    name.trim_end_matches(".weight").to_owned()
}

impl<T: Float> Adapters<T> {
    /// No slots: the model is what its weights make it.
    pub fn none(config: &Config) -> Self {
        let layer =
            |_| LayerAdapters { q: None, k: None, v: None, o: None, gate: None, up: None, down: None };
        Self { layers: (0..config.layers).map(layer).collect(), slot: None, slots: 0, rank: 0 }
    }

    /// Empty slots for the modules that `adapter` has matrices for. None of them answers yet.
    ///
    /// # Errors
    /// If the adapter has tensors of another kind; if the device has no room.
    pub fn new(rt: &Runtime, config: &Config, slots: usize, adapter: &AdapterFile) -> Result<Self, Error> {
        let room = Room { slots, rank: adapter.rank };
        let modules = adapter.peft(&adapter.weights).modules()?;
        let Config { dim, ffn, .. } = *config;
        let [q, kv] = [config.heads, config.kv_heads].map(|heads| heads * config.head_dim);
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            let slots_of =
                |matrix: &str, shape: [usize; 2]| match modules.contains(&module(config, layer, matrix)) {
                    true => Lora::new(rt, room, shape).map(Some),
                    false => Ok(None),
                };
            layers.push(LayerAdapters {
                q: slots_of("attn_q", [q, dim])?,
                k: slots_of("attn_k", [kv, dim])?,
                v: slots_of("attn_v", [kv, dim])?,
                o: slots_of("attn_output", [dim, q])?,
                gate: slots_of("ffn_gate", [ffn, dim])?,
                up: slots_of("ffn_up", [ffn, dim])?,
                down: slots_of("ffn_down", [dim, ffn])?,
            });
        }
        let slot = Some(Param::new(rt, &[1], &[NO_ADAPTER])?);
        Ok(Self { layers, slot, slots: room.slots, rank: room.rank })
    }

    /// Puts an adapter into a slot.
    ///
    /// # Errors
    /// Everything that does not fit the model, together.
    pub fn load(
        &self,
        step: &Step<'_>,
        slot: usize,
        config: &Config,
        file: &AdapterFile,
    ) -> Result<(), Error> {
        let weights = Reordered { file: &file.weights, config };
        let names = self.layers.iter().enumerate().flat_map(|(i, layer)| {
            let LayerAdapters { q, k, v, o, gate, up, down } = layer;
            let all = MATRICES.into_iter().zip([q, k, v, o, gate, up, down]);
            all.filter_map(move |(matrix, lora)| Some((module(config, i, matrix), lora.as_ref()?)))
        });
        Ok(file.peft(&weights).load(step, slot, names)?)
    }

    /// Chooses the adapter that answers from now on; `None` is the model itself.
    ///
    /// # Errors
    /// [`graphable::Error::Argument`] for a slot that does not exist.
    pub fn choose(&self, step: &Step<'_>, slot: Option<usize>) -> Result<()> {
        match (&self.slot, slot) {
            (_, Some(slot)) if slot >= self.slots => {
                let reason = format!("slot {slot} of {}", self.slots);
                Err(graphable::Error::Argument { op: "Adapters::choose", reason })
            }
            (None, _) => Ok(()),
            (Some(chosen), slot) => chosen.write(step, &[slot.map_or(NO_ADAPTER, |slot| slot as u32)]),
        }
    }
}

/// Where the rows of a call, one for each of `tokens`, `[T]`, go; `None` without slots.
pub(super) fn route<'s, T: Float>(
    tokens: &Tensor<'s, u32>,
    adapters: &Adapters<T>,
) -> Result<Option<MoeRoutes<'s>>> {
    let Some(slot) = &adapters.slot else { return Ok(None) };
    let room = Room { slots: adapters.slots, rank: adapters.rank };
    // All rows are of one conversation.
    let slots = ops::broadcast_to(&tokens.scope().view(slot)?, (tokens.dim(0),))?;
    Ok(Some(lora::route(&slots, room)?))
}

/// What a matrix made of `x`, `y`, with what the adapters add.
pub(super) fn adapted<'s, T: Float>(
    y: Tensor<'s, T>,
    x: &Tensor<'s, T>,
    lora: &Option<Lora<T>>,
    routes: &Option<MoeRoutes<'s>>,
) -> Result<Tensor<'s, T>> {
    match (lora, routes) {
        (Some(lora), Some(routes)) => lora.add(&y, x, routes),
        _ => Ok(y),
    }
}

/// An adapter that PEFT saved: a folder with `adapter_config.json` and `adapter_model.safetensors`.
#[derive(Debug)]
pub struct AdapterFile {
    config: AdapterConfig,
    weights: SafeTensors,
    /// The largest rank of its modules, by the shapes of their tensors.
    rank: usize,
}

impl AdapterFile {
    /// Reads an adapter from its folder.
    ///
    /// # Errors
    /// If a file is missing or damaged, the adapter is of a kind that is not computed, or its tensors have other ranks than its
    /// configuration says.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("adapter_config.json");
        let text = std::fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let wrong =
            |(reason, help): (String, &str)| Error::File { path: path.clone(), reason, help: help.into() };
        let config: AdapterConfig =
            serde_json::from_slice(&text).map_err(|e| wrong((e.to_string(), PLAIN)))?;
        if let Some(unsupported) = config.unsupported() {
            return Err(wrong(unsupported));
        }
        let weights = SafeTensors::open(folder.join("adapter_model.safetensors"))?;
        let rank = largest_rank(&config, &weights).map_err(wrong)?;
        Ok(Self { config, weights, rank })
    }

    fn peft<'a>(&self, source: &'a dyn TensorSource) -> Peft<'a> {
        let AdapterConfig { lora_alpha, use_rslora, alpha_pattern, .. } = &self.config;
        let peft = Peft::new(source, *lora_alpha).by_root_of_rank(*use_rslora);
        alpha_pattern.0.iter().fold(peft, |peft, (end, alpha)| peft.alpha_of(end, *alpha))
    }
}

/// The largest rank of an adapter's modules by the shapes of its tensors: a rank that only the configuration has would make the device
/// keep room for nothing.
///
/// # Errors
/// A rank that is not the configuration's, and the remedy.
fn largest_rank(config: &AdapterConfig, weights: &SafeTensors) -> Result<usize, (String, &'static str)> {
    let mut largest = 1;
    for name in weights.names() {
        let Some(module) = name.strip_suffix(".lora_A.weight") else { continue };
        // Whatever else is wrong with a tensor is said when it is loaded.
        let Ok(Some(tensor)) = weights.tensor(&name) else { continue };
        let &[rank, _] = &tensor.shape[..] else { continue };
        let said = config.rank_of(module.strip_prefix("base_model.model.").unwrap_or(module));
        if rank != said {
            return Err((
                format!("it says that the rank of `{module}` is {said}, and its tensors are of rank {rank}"),
                "use the `adapter_config.json` that was saved with the tensors: download or save the adapter again",
            ));
        }
        largest = largest.max(rank);
    }
    Ok(largest)
}

/// The weights of an adapter in the order of the model's rows: where neighbours of a head turn together, as in GGUF files of Llama,
/// the halves of a head are not one after the other.
struct Reordered<'a> {
    file: &'a SafeTensors,
    config: &'a Config,
}

impl TensorSource for Reordered<'_> {
    fn name(&self) -> String {
        self.file.name()
    }

    fn names(&self) -> Vec<String> {
        self.file.names()
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let tensor = self.file.tensor(name)?;
        let turns = ["q_proj.lora_B.weight", "k_proj.lora_B.weight"].iter().any(|end| name.ends_with(end));
        let Some(tensor) = tensor.filter(|_| turns && self.config.neighbours_turn) else {
            return self.file.tensor(name);
        };
        let (size, half) = (self.config.head_dim, self.config.head_dim / 2);
        let Some(&rows) = tensor.shape.first().filter(|rows| **rows > 0 && rows.is_multiple_of(size)) else {
            // Refused for its shape.
            return Ok(Some(tensor));
        };
        let row = tensor.bytes.len() / rows;
        let from = |i: usize| i / size * size + i % 2 * half + i % size / 2;
        let bytes = (0..rows).flat_map(|i| tensor.bytes[from(i) * row..][..row].iter().copied()).collect();
        Ok(Some(HostTensor { bytes: Cow::Owned(bytes), file: None, ..tensor }))
    }
}
