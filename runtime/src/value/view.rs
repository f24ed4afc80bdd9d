//! Typed ranges of device memory.

use super::layout::Layout;
use crate::DType;

/// Addresses of the first byte, and after the last one.
pub(crate) type Range = (u64, u64);

/// A strided view of device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Address of the first element, in bytes.
    pub addr: u64,
    /// Element type.
    pub dtype: DType,
    /// Shape and strides, in elements.
    pub layout: Layout,
}

impl View {
    /// Returns the address of the first byte that the view accesses, and the address after the last one.
    pub fn range(&self) -> (u64, u64) {
        (self.addr, self.addr + (self.layout.span() * self.dtype.size()) as u64)
    }

    /// Returns whether the ranges of both have a byte in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let ((start, end), (other_start, other_end)) = (self.range(), other.range());
        start.max(other_start) < end.min(other_end)
    }
}
