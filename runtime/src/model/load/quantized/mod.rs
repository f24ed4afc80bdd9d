//! Quantised weights of safetensors files: floats of 8 bits and integers of 4 bits, with scales in tensors beside them.
//!
//! `config.rs` reads what `config.json` says of them; `entries.rs` finds the tensors that make a weight, and checks them, before any is
//! read; `float8.rs` and `int4.rs` put them together in blocks. `pack.rs` takes weights apart again, for files.

mod config;
mod entries;
mod float8;
mod int4;
mod pack;
mod raw;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use self::entries::Entry;
pub use self::{
    config::Quantization,
    pack::{PackedTensor, Packing},
};
pub(super) use raw::Raw;

use super::{HostBlocks, HostTensor, SafeTensors, TensorSource};
use crate::{BlockFormat, DType, Result};

/// Safetensors files whose weights may be quantised, as vLLM, compressed-tensors, AutoAWQ and GPTQ write them: a source in which a weight
/// has one name, `layer.weight`, whatever tensors it is stored as.
///
/// | Stored | Tensors of a weight | Blocks |
/// |---|---|---|
/// | fp8 | `weight` (`F8_E4M3`), `weight_scale`: one, one for each row, or for each block of rows and columns; `weight_scale_inv` likewise | [`F8_E4M3`](BlockFormat::F8_E4M3) |
/// | AWQ, layout `gemm` | `qweight`, `qzeros`, `scales` | [`INT4`](BlockFormat::INT4) |
/// | GPTQ, v1 and v2 | `qweight`, `qzeros`, `scales`, `g_idx` | [`INT4`](BlockFormat::INT4) |
/// | `pack-quantized` of compressed-tensors | `weight_packed`, `weight_scale`, `weight_zero_point` | [`INT4`](BlockFormat::INT4) |
///
/// Values stay what they are. (Scales of integers that are not in half precision are rounded to it.) Scales of activations are ignored: activations
/// are not quantised, or by the device ([`Weight`](crate::Weight)). Blocks of 64 floats and 32 integers must divide the rows of a weight;
/// where they do not, and where the elements of a block of integers have scales of several groups, since columns were sorted (`desc_act`),
/// the weight is [loaded](super::Loader::weight) as floats.
///
/// ```no_run
/// use graphable::load::{Quantization, QuantizedTensors, SafeTensors};
///
/// let quantization = Quantization::from_config("model/config.json", &std::fs::read("model/config.json")?)?;
/// let source = QuantizedTensors::new(SafeTensors::open("model")?, quantization)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QuantizedTensors {
    files: SafeTensors,
    entries: BTreeMap<String, Entry>,
}

impl QuantizedTensors {
    /// Finds the weights, and checks the shapes and types of all their tensors, and the values of scales. `quantization` is that of the
    /// model's `config.json`; if it is `None`, tensors are what they are, and those in fp8 have one scale or one for each row.
    ///
    /// # Errors
    /// Returns [`Error::File`](crate::Error::File) if tensors of a weight are missing, or have other types or sizes than its layout says,
    /// and if values cannot be those of a weight.
    pub fn new(files: SafeTensors, quantization: Option<Quantization>) -> Result<Self> {
        let entries = entries::find(&files, quantization.unwrap_or(Quantization::OF_TENSORS))?;
        Ok(Self { files, entries })
    }

    /// Returns the format in which a weight is stored; `None` if it is not quantised, or not there. It may have [no
    /// blocks](TensorSource::blocks) in it nevertheless.
    pub fn format(&self, name: &str) -> Option<BlockFormat> {
        match self.entries.get(name)? {
            Entry::Plain => self.files.stored_blocks(name).map(|(format, _)| format),
            Entry::Float8 { .. } => Some(BlockFormat::F8_E4M3),
            Entry::Int4 { .. } => Some(BlockFormat::INT4),
        }
    }

    /// Returns the sizes of a tensor, outermost first; `None` if it is not there.
    pub fn shape(&self, name: &str) -> Option<Vec<usize>> {
        let entry = self.entries.get(name)?;
        if let Some(shape) = entry.shape() {
            return Some(shape.to_vec());
        }
        match self.files.stored_blocks(name) {
            Some((_, shape)) => Some(shape),
            None => self.files.raw(name).map(|raw| raw.shape.to_vec()),
        }
    }

    /// Returns the bytes that a tensor takes in the files, with its scales; 0 if it is not there.
    pub fn stored_bytes(&self, name: &str) -> u64 {
        let Some(entry) = self.entries.get(name) else { return 0 };
        let bytes = |name: String| self.files.raw(&name).map_or(0, |raw| raw.bytes.len() as u64);
        entry.parts(name).into_iter().map(bytes).sum()
    }

    /// Returns the name of a weight of integers whose columns were sorted (`desc_act` of GPTQ), so that neighbours have scales of
    /// several groups, and it has no blocks; `None` if there is none.
    pub fn sorted_weight(&self) -> Option<&str> {
        let mut entries = self.entries.iter();
        entries
            .find(|(_, entry)| matches!(entry, Entry::Int4 { has_blocks: false, .. }))
            .map(|(name, _)| name.as_str())
    }
}

impl TensorSource for QuantizedTensors {
    fn name(&self) -> String {
        self.files.name()
    }

    fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// Returns the tensor; of a quantised weight its values, in f32.
    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        let (shape, values) = match self.entries.get(name) {
            None => return Ok(None),
            Some(Entry::Plain) => return self.files.tensor(name),
            Some(entry @ Entry::Float8 { .. }) => {
                let weight = entry.float8(&self.files, name)?;
                (weight.shape, weight.values())
            }
            Some(entry) => {
                let weight = entry.int4(&self.files, name)?;
                (weight.shape, weight.values())
            }
        };
        Ok(Some(HostTensor {
            dtype: DType::F32,
            shape: shape.to_vec(),
            bytes: Cow::Owned(values),
            file: None,
        }))
    }

    fn blocks(&self, name: &str) -> Result<Option<HostBlocks<'_>>> {
        let (format, shape, blocks) = match self.entries.get(name) {
            None => return Ok(None),
            Some(Entry::Plain) => return self.files.blocks(name),
            Some(entry @ Entry::Float8 { .. }) => {
                let weight = entry.float8(&self.files, name)?;
                (BlockFormat::F8_E4M3, weight.shape, weight.blocks())
            }
            Some(entry) => {
                let weight = entry.int4(&self.files, name)?;
                (BlockFormat::INT4, weight.shape, weight.blocks())
            }
        };
        let all = |bytes| HostBlocks { format, shape: shape.to_vec(), bytes: Cow::Owned(bytes), file: None };
        Ok(blocks.map(all))
    }
}

impl fmt::Debug for QuantizedTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantised = self.entries.values().filter(|entry| !matches!(entry, Entry::Plain)).count();
        f.debug_struct("QuantizedTensors").field("files", &self.files).field("quantized", &quantised).finish()
    }
}
