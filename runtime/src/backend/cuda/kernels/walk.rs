//! Several views of one shape, walked together.

use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;

use crate::{backend::View, base::rank::MAX_RANK};

/// Threads of a block of every kernel that walks.
pub(crate) const THREADS: u32 = 256;

/// Mirrors `Dims` of `common.cuh`: innermost first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Dims {
    /// Number of dimensions.
    pub(crate) rank: u32,
    /// Set if a number or an offset may not fit in 31 bits.
    pub(crate) wide: u32,
    /// Sizes.
    pub(crate) shape: [u64; MAX_RANK],
}

/// A dimension: its size, and the strides of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim<const N: usize> {
    pub(crate) size: u64,
    pub(crate) strides: [u64; N],
}

/// Dimensions, innermost first; none has size 1, and no two could be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk<const N: usize>(pub(crate) SmallVec<[Dim<N>; MAX_RANK]>);

impl<const N: usize> Walk<N> {
    /// A walk over `shape`, where operand `k` has `strides[k]`.
    pub(crate) fn new(shape: &[usize], strides: [&[usize]; N]) -> Self {
        let mut dims: SmallVec<[Dim<N>; MAX_RANK]> = SmallVec::new();
        for (axis, &size) in shape.iter().enumerate().rev() {
            if size == 1 {
                continue;
            }
            let dim = Dim { size: size as u64, strides: strides.map(|s| s[axis] as u64) };
            match dims.last_mut() {
                Some(last) if (0..N).all(|k| dim.strides[k] == last.size * last.strides[k]) => {
                    last.size *= dim.size;
                }
                _ => dims.push(dim),
            }
        }
        Self(dims)
    }

    /// A walk over views of equal shape.
    pub(crate) fn of(views: [&View; N]) -> Self {
        Self::new(views[0].layout.shape(), views.map(|v| v.layout.strides()))
    }

    /// Number of places.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|d| d.size).product()
    }

    /// Returns whether every operand is contiguous.
    pub(crate) fn is_flat(&self) -> bool {
        match *self.0 {
            [] => true,
            [dim] => dim.strides == [1; N],
            _ => false,
        }
    }

    /// As the kernel reads it.
    pub(crate) fn dims(&self) -> Dims {
        // Sums in 128 bits: a layout is at most as large as memory, but a walk of none is free to be.
        let most = |k: usize| {
            let last = |d: &Dim<N>| u128::from(d.size.saturating_sub(1)) * u128::from(d.strides[k]);
            self.0.iter().map(last).sum::<u128>()
        };
        let wide = self.count() >= 1 << 31 || (0..N).any(|k| most(k) >= 1 << 31);
        let mut dims = Dims { rank: self.0.len() as u32, wide: wide.into(), shape: [1; MAX_RANK] };
        for (to, dim) in dims.shape.iter_mut().zip(&self.0) {
            *to = dim.size;
        }
        dims
    }

    /// Strides of each operand, innermost first.
    pub(crate) fn strides(&self) -> [[u64; MAX_RANK]; N] {
        let mut out = [[0; MAX_RANK]; N];
        for (k, out) in out.iter_mut().enumerate() {
            for (to, dim) in out.iter_mut().zip(&self.0) {
                *to = dim.strides[k];
            }
        }
        out
    }

    /// The largest word, of at most 16 bytes, in which all of it can be counted: elements have `size`
    /// bytes, and `others` (in bytes) must be whole words too.
    pub(crate) fn word(&self, size: u64, others: &[u64]) -> u64 {
        let Some((inner, rest)) = self.0.split_first() else { return size };
        if inner.strides != [1; N] {
            return size;
        }
        let strides = rest.iter().flat_map(|d| d.strides).map(|s| s * size);
        let all = strides.chain([inner.size * size]).chain(others.iter().copied()).fold(0, |a, b| a | b);
        // Of the common powers of two, the largest.
        (1 << (all | 16).trailing_zeros()).max(size)
    }

    /// The walk over words of `word` bytes instead of elements of `size`.
    pub(crate) fn in_words(mut self, size: u64, word: u64) -> Self {
        if word != size {
            for (i, dim) in self.0.iter_mut().enumerate() {
                if i == 0 {
                    dim.size = dim.size * size / word;
                } else {
                    dim.strides = dim.strides.map(|s| s * size / word);
                }
            }
        }
        self
    }

    /// The walk in steps of `lanes` elements, if every operand can be read so: next to each other at
    /// aligned places, or one element for all. `operands` are addresses and sizes of elements.
    pub(crate) fn in_packs(&self, lanes: u64, operands: [(u64, u64); N]) -> Option<Self> {
        let mut out = self.clone();
        let (inner, rest) = out.0.split_first_mut()?;
        for (k, (addr, size)) in operands.into_iter().enumerate() {
            let whole = match inner.strides[k] {
                0 => true,
                1 => addr % (lanes * size) == 0 && rest.iter().all(|d| d.strides[k] % lanes == 0),
                _ => false,
            };
            if !whole {
                return None;
            }
            inner.strides[k] *= lanes;
        }
        if !rest.is_empty() && inner.size % lanes != 0 {
            return None;
        }
        inner.size = inner.size.div_ceil(lanes);
        Some(out)
    }
}
