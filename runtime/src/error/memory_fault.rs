//! How a block of memory and the tensors disagree.

/// The mismatch between a block of memory and the tensors.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// The block is live, but no tensor uses it.
    Untracked,
    /// A tensor uses the block, but it is not live.
    Missing,
    /// The block is live, but outside the arena's committed memory.
    Uncommitted,
}

impl std::fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Untracked => "are allocated but belong to no tensor",
            Self::Missing => "belong to a tensor but are not allocated",
            Self::Uncommitted => "are allocated beyond the committed memory",
        })
    }
}
