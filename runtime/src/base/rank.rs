//! The limit of dimensions.

/// The largest rank of a tensor.
pub const MAX_RANK: usize = 6;
