//! Tensors of a file as they are, and what is expected of them.

use ::safetensors::tensor::Dtype;
use half::{bf16, f16};

use crate::{Error, Result};

/// A tensor of any type.
#[derive(Clone, Copy, Debug)]
pub(in crate::model::load) struct Raw<'a> {
    pub(in crate::model::load) dtype: Dtype,
    pub(in crate::model::load) shape: &'a [usize],
    pub(in crate::model::load) bytes: &'a [u8],
}

/// Returns the error of a tensor that is not what its layout says.
pub(super) fn wrong<T>(path: &str, reason: String) -> Result<T> {
    Err(Error::File { path: path.into(), reason })
}

impl<'a> Raw<'a> {
    /// Checks type and shape; `name` and `path` are for the error.
    pub(super) fn check(&self, path: &str, name: &str, dtypes: &[Dtype], shape: &[usize]) -> Result<()> {
        if dtypes.contains(&self.dtype) && self.shape == shape {
            return Ok(());
        }
        let (dtype, found) = (self.dtype, self.shape);
        wrong(
            path,
            format!(
                "has `{name}` as {dtype:?} {found:?}; {dtypes:?} {shape:?} is needed: the model is damaged, or incomplete"
            ),
        )
    }

    /// Its words of 32 bits.
    pub(super) fn words(self) -> Words<'a> {
        Words(self.bytes.as_chunks().0)
    }

    /// Its elements, which are of one of [`FLOATS`].
    pub(super) fn floats(self) -> Floats<'a> {
        match self.dtype {
            Dtype::F32 => Floats::F32(self.bytes.as_chunks().0),
            Dtype::F16 => Floats::F16(self.bytes.as_chunks().0),
            _ => Floats::Bf16(self.bytes.as_chunks().0),
        }
    }
}

/// The types of scales.
pub(super) const FLOATS: &[Dtype] = &[Dtype::F32, Dtype::F16, Dtype::BF16];

/// Words of 32 bits, which need not be aligned.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    pub(super) fn at(self, i: usize) -> u32 {
        u32::from_le_bytes(self.0[i])
    }

    /// The integer of 4 bits at a place of a word.
    pub(super) fn nibble(self, word: usize, place: usize) -> u8 {
        (self.at(word) >> (4 * place)) as u8 & 0xF
    }
}

/// Floats of a type.
#[derive(Clone, Copy)]
pub(super) enum Floats<'a> {
    F32(&'a [[u8; 4]]),
    F16(&'a [[u8; 2]]),
    Bf16(&'a [[u8; 2]]),
}

impl Floats<'_> {
    pub(super) fn at(self, i: usize) -> f32 {
        match self {
            Self::F32(all) => f32::from_le_bytes(all[i]),
            Self::F16(all) => f16::from_le_bytes(all[i]).to_f32(),
            Self::Bf16(all) => bf16::from_le_bytes(all[i]).to_f32(),
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::F32(all) => all.len(),
            Self::F16(all) | Self::Bf16(all) => all.len(),
        }
    }
}
