//! Tensors without their type and borrow.

use super::{
    layout::{Layout, PaddedDims},
    owned::OwnerId,
    view::View,
};
use crate::DType;

/// Identifies a slot, that is, the storage that tensors view, within a step. A slot without handles is
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId(u32);

impl SlotId {
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A handle without its type and borrow, as used by keys, outputs and the core.
#[derive(Clone, Copy, Debug)]
pub struct RawTensor {
    pub(crate) slot: SlotId,
    pub(crate) epoch: u64,
    pub(crate) dtype: DType,
    pub(crate) marks: PaddedDims,
    pub(crate) addr: u64,
    /// Identity of owned memory; `None` for arena blocks.
    pub(crate) owner: Option<OwnerId>,
    pub(crate) layout: Layout,
}

impl RawTensor {
    pub(crate) fn view(&self) -> View {
        View { addr: self.addr, dtype: self.dtype, layout: self.layout }
    }
}
