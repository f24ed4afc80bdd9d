//! Elements from place to place, whatever they mean: everything is counted in words of 1 to 16 bytes.

use bytemuck::{Pod, Zeroable};

use super::{
    Grid, Submit,
    walk::{Dims, THREADS, Walk},
};
use crate::base::rank::MAX_RANK;

/// Mirrors `Move` of `common.cuh`: a strided view to a strided view of equal shape.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Move {
    /// First word that is read.
    pub(crate) from: u64,
    /// First word that is written.
    pub(crate) to: u64,
    /// Words.
    pub(crate) count: u64,
    /// Their dimensions.
    pub(crate) dims: Dims,
    /// Strides of both views, in words.
    pub(crate) strides: [[u64; MAX_RANK]; 2],
}
const _: () = assert!(size_of::<Move>() == 176);

impl Move {
    /// Moves the words of a walk.
    pub(crate) fn new(walk: &Walk<2>, from: u64, to: u64) -> Self {
        Self { from, to, count: walk.count(), dims: walk.dims(), strides: walk.strides() }
    }
}

/// Of kernels for words of 1, 2, 4, 8 and 16 bytes, the one for `word`.
pub(crate) fn for_word(names: [&'static str; 5], word: u64) -> &'static str {
    names[(word.trailing_zeros() as usize).min(4)]
}

/// Threads for so many items, as many as the device runs at once.
pub(crate) fn line(gpu: &dyn Submit, items: u64) -> Grid {
    Grid::line(gpu.props().blocks_for(items, THREADS), THREADS)
}
