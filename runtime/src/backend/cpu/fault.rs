//! What a kernel can find wrong with its inputs' values.

/// An index outside its table. The kernel goes on: see the operation for what it gives then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The operation.
    pub(crate) op: &'static str,
    /// The first such index.
    pub(crate) index: u64,
    /// How many rows there are.
    pub(crate) bound: u64,
}
