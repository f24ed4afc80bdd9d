//! The product as a value, by which other files recognise its launches (`thin/fuse.rs`); what it does is in `operation.rs`.

use crate::Numerics;

#[derive(Clone, Copy, Debug)]
pub(super) struct MatMul {
    /// The CPU computes f32 in full precision, and always in one order.
    pub(super) numerics: Numerics,
}
