//! What becomes of matrices that are stored in blocks, or are to be.

use std::borrow::Cow;

use graphable::{
    BlockFormat,
    load::{HostBlocks, HostTensor, TensorSource},
};
use rayon::prelude::*;

use crate::{elements::floats, gguf::TensorType};

/// What becomes of the matrices of a model: the weights of products, and the embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// They are floats of the model's type; those that are stored in blocks are dequantised.
    Never,
    /// Those that are stored in blocks stay so.
    Stored,
    /// They become blocks of this format or, where it does not divide their rows, of another one ([`TensorType::fitting`], `Q8_0` instead of
    /// `F8_E4M3`). Where none fits, or they hold values for which it has no scale, they are floats.
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
        // Of stored blocks, the shape is known without dequantising them.
        let stored = self.source.blocks(name)?;
        if let Some(stored) = stored.filter(|blocks| fitting(wanted, &blocks.shape) == Some(blocks.format)) {
            return Ok(Some(stored));
        }
        Ok(self.source.tensor(name)?.and_then(|tensor| quantised(&tensor, fitting(wanted, &tensor.shape)?)))
    }
}

/// The format of a matrix of this shape, if blocks fit it.
fn fitting(wanted: BlockFormat, shape: &[usize]) -> Option<BlockFormat> {
    let &[_, width] = shape else { return None };
    match TensorType::of_blocks(wanted) {
        Some(ty) => ty.fitting(width).blocks(),
        // No files of GGUF have it.
        None if wanted.row_bytes(width).is_some() => Some(wanted),
        None if wanted == BlockFormat::F8_E4M3 => fitting(BlockFormat::Q8_0, shape),
        None => None,
    }
}

/// A matrix in another format, made row by row; `None` if it has to stay as it is.
fn quantised(tensor: &HostTensor<'_>, format: BlockFormat) -> Option<HostBlocks<'static>> {
    let &[rows, width] = tensor.shape.as_slice() else { return None };
    let (row, stored) = (format.row_bytes(width)?, width.checked_mul(tensor.dtype.size())?);
    if stored == 0 || tensor.bytes.len() != rows.checked_mul(stored)? {
        return None;
    }
    let mut bytes = vec![0; rows.checked_mul(row)?];
    let rows = bytes.par_chunks_exact_mut(row).zip(tensor.bytes.par_chunks_exact(stored));
    rows.try_for_each(|(to, stored)| {
        to.copy_from_slice(&format.quantize(&floats(stored, tensor.dtype)?).ok()?);
        Some(())
    })?;
    Some(HostBlocks { format, shape: tensor.shape.clone(), bytes: Cow::Owned(bytes), file: None })
}
