//! The tensors that make a weight.

use std::collections::{BTreeMap, BTreeSet};

use ::safetensors::tensor::Dtype;

use super::{
    config::{Layout, Method, Quantization},
    float8::{DTYPE, Float8},
    int4::{Int4, Tensors},
    raw::{Raw, wrong},
};
use crate::{
    Result,
    model::load::{SafeTensors, TensorSource},
};

/// Names, after that of a layer, of what is not a part of the model: scales of activations, and of a cache that is not quantised here.
const IGNORED: [&str; 9] = [
    "input_scale",
    "output_scale",
    "activation_scale",
    "k_scale",
    "v_scale",
    "q_scale",
    "kv_scale",
    "prob_scale",
    "weight_shape",
];
/// The scale of floats of 8 bits. The second one is multiplied with, too: its name is from the quantiser's side.
const FLOAT8_SCALES: [&str; 2] = ["weight_scale", "weight_scale_inv"];

/// A tensor of the model.
pub(super) enum Entry {
    /// It is what it is.
    Plain,
    Float8 {
        shape: [usize; 2],
        scale: &'static str,
        block: Option<[usize; 2]>,
    },
    Int4 {
        shape: [usize; 2],
        layout: Layout,
        group: Option<usize>,
        has_blocks: bool,
    },
}

/// The name of the layer whose weight is called `name`.
fn layer(name: &str) -> &str {
    name.strip_suffix(".weight").unwrap_or(name)
}

impl Entry {
    pub(super) fn shape(&self) -> Option<[usize; 2]> {
        match self {
            Self::Plain => None,
            Self::Float8 { shape, .. } | Self::Int4 { shape, .. } => Some(*shape),
        }
    }

    /// The names of the tensors of the weight `name`, of which some may not be there.
    pub(super) fn parts(&self, name: &str) -> Vec<String> {
        let of = |part: &str| format!("{}.{part}", layer(name));
        match self {
            Self::Plain => vec![name.to_owned()],
            Self::Float8 { scale, .. } => vec![name.to_owned(), of(scale)],
            Self::Int4 { layout, .. } => {
                let names = layout.names();
                [names.integers, names.zeros, names.scales, names.groups].map(of).into()
            }
        }
    }

    /// The weight, of floats of 8 bits.
    pub(super) fn float8<'a>(&self, files: &'a SafeTensors, name: &str) -> Result<Float8<'a>> {
        let Self::Float8 { scale, block, .. } = self else { unreachable!("a weight of floats") };
        float8(files, name, scale, *block)
    }

    /// The weight, of integers of 4 bits.
    pub(super) fn int4<'a>(&self, files: &'a SafeTensors, name: &str) -> Result<Int4<'a>> {
        let Self::Int4 { layout, group, .. } = self else { unreachable!("a weight of integers") };
        int4(files, layer(name), *layout, *group)
    }
}

/// The tensors of the model by their names, and what they are.
pub(super) fn find(
    files: &SafeTensors,
    Quantization(method): Quantization,
) -> Result<BTreeMap<String, Entry>> {
    let path = files.name();
    let mut entries = BTreeMap::new();
    let mut parts = BTreeSet::new();
    for name in files.names() {
        let (of_layer, last) = name.rsplit_once('.').unwrap_or(("", &name));
        let found = match method {
            Method::Float8 { block } if last == "weight" && dtype(files, &name) == Some(DTYPE) => {
                Some((name.clone(), float8_entry(files, &name, block)?))
            }
            Method::Int4 { layout, group } if last == layout.names().integers => {
                let weight = int4(files, of_layer, layout, group)?;
                let (shape, has_blocks) = (weight.shape, weight.has_blocks);
                Some((format!("{of_layer}.weight"), Entry::Int4 { shape, layout, group, has_blocks }))
            }
            _ => None,
        };
        if let Some((name, entry)) = found {
            parts.extend(entry.parts(&name));
            // GPTQ writes a bias for layers that have none.
            let bias = format!("{of_layer}.bias");
            if matches!(entry, Entry::Int4 { layout: Layout::Gptq { .. }, .. })
                && files.raw(&bias).is_some_and(|raw| is_zero(&raw))
            {
                parts.insert(bias);
            }
            entries.insert(name, entry);
        }
    }
    let is_quantised = !entries.is_empty();
    for name in files.names() {
        let last = name.rsplit_once('.').map_or(name.as_str(), |(_, last)| last);
        let is_part = parts.contains(&name) || is_quantised && IGNORED.contains(&last);
        if !is_part && entries.insert(name.clone(), Entry::Plain).is_some() {
            return wrong(&path, format!("has `{name}` twice, quantised and not; it is damaged"));
        }
    }
    Ok(entries)
}

/// The weight `name`, of floats of 8 bits in `block`s of rows and columns.
fn float8_entry(files: &SafeTensors, name: &str, block: Option<[usize; 2]>) -> Result<Entry> {
    let layer = layer(name);
    let raw = |part: &str| files.raw(&format!("{layer}.{part}"));
    let Some(scale) = FLOAT8_SCALES.into_iter().find(|part| raw(part).is_some()) else {
        let reason = format!("has `{name}` in fp8, and no `{layer}.weight_scale`; it is incomplete");
        return wrong(&files.name(), reason);
    };
    // Of one scale, it does not matter.
    let is_one = raw(scale).is_some_and(|raw| raw.shape.iter().product::<usize>() == 1);
    if scale == FLOAT8_SCALES[1] && block.is_none() && !is_one {
        let reason = format!(
            "has `{layer}.{scale}`, scales of blocks; `weight_block_size` in `quantization_config` of config.json says of how \
             many rows and columns, and is missing"
        );
        return wrong(&files.name(), reason);
    }
    Ok(Entry::Float8 { shape: float8(files, name, scale, block)?.shape, scale, block })
}

fn dtype(files: &SafeTensors, name: &str) -> Option<Dtype> {
    files.raw(name).map(|raw| raw.dtype)
}

/// Returns whether all elements of a tensor of floats are 0.
fn is_zero(raw: &Raw<'_>) -> bool {
    let size = match raw.dtype {
        Dtype::F16 | Dtype::BF16 => 2,
        Dtype::F32 => 4,
        _ => return false,
    };
    // Of either sign.
    raw.bytes.chunks(size).all(|v| v.iter().rev().enumerate().all(|(i, b)| *b == 0 || i == 0 && *b == 0x80))
}

fn float8<'a>(
    files: &'a SafeTensors,
    name: &str,
    scale: &str,
    block: Option<[usize; 2]>,
) -> Result<Float8<'a>> {
    let scale = format!("{}.{scale}", layer(name));
    let tensors = [part(files, name)?, part(files, &scale)?];
    Float8::new(&files.name(), [name, &scale], tensors, block)
}

fn int4<'a>(files: &'a SafeTensors, layer: &str, layout: Layout, group: Option<usize>) -> Result<Int4<'a>> {
    let names = layout.names();
    let of = |part: &str| format!("{layer}.{part}");
    let tensors = Tensors {
        integers: part(files, &of(names.integers))?,
        zeros: files.raw(&of(names.zeros)),
        scales: part(files, &of(names.scales))?,
        groups: files.raw(&of(names.groups)),
    };
    Int4::new(&files.name(), layer, layout, group, tensors)
}

/// A tensor that a weight cannot do without.
fn part<'a>(files: &'a SafeTensors, name: &str) -> Result<Raw<'a>> {
    match files.raw(name) {
        Some(raw) => Ok(raw),
        None => wrong(&files.name(), format!("does not have `{name}`; it is incomplete")),
    }
}
