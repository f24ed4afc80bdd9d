//! Faults that a kernel can find in its operands.

use crate::Error;

/// The first index that a kernel found out of range. Its output is complete nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The operation, by [`Op::name`](crate::backend::Op::name).
    pub(crate) op: &'static str,
    /// The index.
    pub(crate) index: u64,
    /// The number of rows.
    pub(crate) bound: u64,
}

impl From<Fault> for Error {
    fn from(Fault { op, index, bound }: Fault) -> Self {
        Self::IndexOutOfRange { op, index, bound }
    }
}
