//! The product with a weight in blocks as a value, by which other files recognise its launches (`matmul/thin/fuse.rs`); what
//! it does is in `operation.rs`.

use crate::{BlockFormat, Numerics};

/// `[x: M, K; blocks: u8 N, bytes of a row; (bias: M, N)] -> [y: M, N]`: `y = x w^T + bias`.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct QuantizedLinear {
    pub(in crate::ops) format: BlockFormat,
    /// Of products of floats, which those of many rows are on a GPU.
    pub(super) numerics: Numerics,
    /// Whether a GPU asks for the first blocks before earlier kernels have ended: none of them writes the blocks.
    pub(super) early: bool,
}

impl QuantizedLinear {
    pub(in crate::ops) fn new(format: BlockFormat, numerics: Numerics) -> Self {
        Self { format, numerics, early: false }
    }
}
