//! Tensors without their type and borrow.

use super::{
    layout::{Layout, Marks},
    view::View,
};
use crate::DType;

/// A handle without its type and borrow: what keys, outputs and the core work on.
#[derive(Clone, Copy, Debug)]
pub struct RawTensor {
    pub(crate) slot: u32,
    pub(crate) epoch: u64,
    pub(crate) dtype: DType,
    pub(crate) marks: Marks,
    pub(crate) addr: u64,
    /// Identity of owned memory, 0 for arena blocks.
    pub(crate) owned: u64,
    pub(crate) layout: Layout,
}

impl RawTensor {
    pub(crate) fn view(&self) -> View {
        View { addr: self.addr, dtype: self.dtype, layout: self.layout }
    }
}
