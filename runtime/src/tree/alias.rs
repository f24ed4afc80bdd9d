//! Facts about addresses that a body may learn although its key does not fix them.

use smallvec::SmallVec;

/// One thing that [`Tensor::same_memory`](crate::Tensor::same_memory) depends on, or which parameters, states and generators are one. Operands
/// are positions in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alias {
    /// A padded input stands for owned memory, at that address.
    Owned { operand: u32, addr: u64 },
    /// Two live-ins are in one storage; the first begins so many bytes after the second, or before it, modulo 2^64.
    Shared { operand: u32, with: u32, distance: u64 },
    /// The body asks whether tensors refer to the same memory, and what follows says how its live-ins overlap.
    Asked,
    /// So many rows of a bucketed symbol are real: whether two layouts are one depends on that.
    RealSize(usize),
}

/// The overlaps of the live-ins of a call.
pub(crate) type Aliases = SmallVec<[Alias; 2]>;
