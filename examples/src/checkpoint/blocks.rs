//! What becomes of matrices that are stored in blocks, or are to be.

use std::borrow::Cow;

use graphable::{
    BlockFormat, DType,
    load::{HostBlocks, HostTensor, TensorSource},
};
use half::{bf16, f16};

/// What becomes of the matrices of a model: the weights of products, and the embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// They are floats of the model's type; those that are stored in blocks are dequantised.
    Never,
    /// Those that are stored in blocks stay so.
    Stored,
    /// They become blocks of this format. Where it does not divide their rows, or they hold values for which it has no scale, they
    /// are floats.
    Format(BlockFormat),
}

/// A source whose matrices are in blocks as [`Blocks`] says.
pub(super) struct Blocked<'a, S> {
    pub(super) source: &'a S,
    pub(super) blocks: Blocks,
}

impl<S: TensorSource> TensorSource for Blocked<'_, S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn names(&self) -> Vec<String> {
        self.source.names()
    }

    fn tensor(&self, name: &str) -> graphable::Result<Option<HostTensor<'_>>> {
        self.source.tensor(name)
    }

    fn blocks(&self, name: &str) -> graphable::Result<Option<HostBlocks<'_>>> {
        let wanted = match self.blocks {
            Blocks::Never => return Ok(None),
            Blocks::Stored => return self.source.blocks(name),
            Blocks::Format(wanted) => wanted,
        };
        if let Some(stored) = self.source.blocks(name)?.filter(|blocks| blocks.format == wanted) {
            return Ok(Some(stored));
        }
        Ok(self.source.tensor(name)?.and_then(|tensor| quantised(&tensor, wanted)))
    }
}

/// A matrix in another format, made row by row; `None` if it has to stay as it is.
fn quantised(tensor: &HostTensor<'_>, format: BlockFormat) -> Option<HostBlocks<'static>> {
    let &[rows, width] = tensor.shape.as_slice() else { return None };
    let (row, stored) = (format.row_bytes(width)?, width.checked_mul(tensor.dtype.size())?);
    if stored == 0 || tensor.bytes.len() != rows.checked_mul(stored)? {
        return None;
    }
    let mut bytes = Vec::with_capacity(rows * row);
    for stored in tensor.bytes.chunks_exact(stored) {
        bytes.extend(format.quantize(&floats(stored, tensor.dtype)?).ok()?);
    }
    Some(HostBlocks { format, shape: tensor.shape.clone(), bytes: Cow::Owned(bytes), file: None })
}

/// Values of a float type as `f32`.
fn floats(stored: &[u8], dtype: DType) -> Option<Vec<f32>> {
    let halves = || stored.chunks_exact(2).map(|b| [b[0], b[1]]);
    Some(match dtype {
        DType::F32 => stored.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        DType::F16 => halves().map(|b| f16::from_le_bytes(b).to_f32()).collect(),
        DType::Bf16 => halves().map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
        _ => return None,
    })
}
