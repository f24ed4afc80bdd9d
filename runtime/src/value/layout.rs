//! Shapes and strides, held inline so that a tensor handle never allocates.

use std::fmt;

use crate::{Error, Result, base::rank::MAX_RANK};

/// The maximum number of elements of a tensor: elements of every type then fit in the address space, so that
/// sizes in bytes do not overflow.
const MAX_COUNT: usize = isize::MAX as usize / 8;

/// Shape and strides of a view, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    rank: u8,
    /// Set if the elements are in row-major order without gaps; every key has it.
    contiguous: bool,
    shape: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
}

impl Layout {
    /// Returns the row-major layout of `shape`.
    ///
    /// # Errors
    /// Returns [`Error::Rank`] above [`MAX_RANK`] dimensions, and [`Error::TooLarge`] if the elements could
    /// exceed the address space.
    pub fn contiguous(shape: &[usize]) -> Result<Self> {
        if shape.len() > MAX_RANK {
            return Err(Error::Rank { rank: shape.len() });
        }
        let (rank, strides) = (shape.len() as u8, [0; MAX_RANK]);
        let mut layout = Self { rank, contiguous: true, shape: [1; MAX_RANK], strides };
        layout.shape[..shape.len()].copy_from_slice(shape);
        let mut stride = 1usize;
        for axis in (0..shape.len()).rev() {
            layout.strides[axis] = stride;
            stride = stride
                .checked_mul(shape[axis].max(1))
                .filter(|&count| count <= MAX_COUNT)
                .ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })?;
        }
        Ok(layout)
    }

    /// Creates a layout from explicit strides (in elements; 0 repeats one element along the axis).
    ///
    /// # Errors
    /// Returns [`Error::Rank`] above [`MAX_RANK`] dimensions, and [`Error::Argument`] unless there is one
    /// stride per dimension.
    pub fn strided(shape: &[usize], strides: &[usize]) -> Result<Self> {
        if shape.len() != strides.len() {
            let reason = format!(
                "{} sizes and {} strides; each dimension needs one of both",
                shape.len(),
                strides.len()
            );
            return Err(Error::Argument { op: "Layout::strided", reason });
        }
        if shape.len() > MAX_RANK {
            return Err(Error::Rank { rank: shape.len() });
        }
        let rank = shape.len() as u8;
        let mut layout = Self { rank, contiguous: true, shape: [1; MAX_RANK], strides: [0; MAX_RANK] };
        layout.shape[..shape.len()].copy_from_slice(shape);
        layout.strides[..shape.len()].copy_from_slice(strides);
        Ok(layout.with_contiguity())
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Returns the sizes, outermost first.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank()]
    }

    /// Returns the sizes of as many dimensions as there can be, 1 beyond the rank.
    #[inline]
    pub(crate) fn sizes(&self) -> [usize; MAX_RANK] {
        self.shape
    }

    /// Returns whether another layout has the same shape.
    #[inline]
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        // All sizes: those beyond the rank are 1, and a comparison of a known length is shorter.
        self.rank == other.rank && self.shape == other.shape
    }

    /// Returns the strides in elements, outermost first.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.rank()]
    }

    /// Returns the number of elements in the view.
    pub fn count(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns the number of elements from the first to the last one that the view accesses, inclusive.
    pub fn span(&self) -> usize {
        let count = self.count();
        if count == 0 || self.contiguous {
            return count;
        }
        1 + self.shape().iter().zip(self.strides()).map(|(n, s)| (n - 1) * s).sum::<usize>()
    }

    /// Returns whether the elements are in row-major order without gaps. Strides of dimensions of size 1 are
    /// ignored, as are all strides if there are no elements.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Returns the layout with `contiguous` as follows from its sizes and strides.
    fn with_contiguity(mut self) -> Self {
        let mut expected = 1usize;
        let dense = self.shape().iter().zip(self.strides()).rev().all(|(&n, &stride)| {
            let follows = n == 1 || stride == expected;
            expected = expected.saturating_mul(n);
            follows
        });
        self.contiguous = dense || self.shape().contains(&0);
        self
    }

    /// Returns the strides that matter: those of dimensions of size 1 are replaced by 0, whatever view they
    /// come from.
    pub(crate) fn meaning(&self) -> impl Iterator<Item = usize> {
        self.shape().iter().zip(self.strides()).map(|(&n, &stride)| if n == 1 { 0 } else { stride })
    }

    /// Returns the layout with reordered dimensions: dimension `i` of the result is `axes[i]` of `self`.
    /// `axes` must be a permutation.
    pub(crate) fn permuted(&self, axes: &[usize]) -> Self {
        let mut out = *self;
        for (to, &from) in axes.iter().enumerate() {
            out.shape[to] = self.shape[from];
            out.strides[to] = self.strides[from];
        }
        out.with_contiguity()
    }

    /// Returns the layout that views `self` as `shape`: missing outer dimensions are added, and dimensions of
    /// size 1 are repeated with stride 0. Returns `None` if the shapes do not broadcast.
    pub(crate) fn broadcast_to(&self, shape: &[usize]) -> Option<Self> {
        let lead = shape.len().checked_sub(self.rank())?;
        let mut strides = [0; MAX_RANK];
        for (axis, &n) in shape.iter().enumerate() {
            if axis < lead {
                continue;
            }
            let (have, stride) = (self.shape[axis - lead], self.strides[axis - lead]);
            strides[axis] = match have {
                _ if have == n => stride,
                1 => 0,
                _ => return None,
            };
        }
        Self::strided(shape, &strides[..shape.len()]).ok()
    }

    /// Returns the element offset of a multi-index.
    pub(crate) fn offset_of(&self, index: &[usize]) -> usize {
        index.iter().zip(self.strides()).map(|(i, s)| i * s).sum()
    }

    /// Returns the same view narrowed to `len` elements along `axis`; the caller adjusts the address.
    pub(crate) fn with_dim(&self, axis: usize, len: usize) -> Self {
        let mut out = *self;
        out.shape[axis] = len;
        out.with_contiguity()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shape())?;
        if !self.is_contiguous() {
            write!(f, " strides {:?}", self.strides())?;
        }
        Ok(())
    }
}

/// Padding marks: the dimensions of a tensor that are padded to a bucket, and the symbols that pad them.
///
/// Symbol `k` of the running call (its index in the function's `#[dims]` symbols) is stored as
/// `k + 1`; 0 means "not padded".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaddedDims([u8; MAX_RANK]);

impl PaddedDims {
    /// No dimension is padded.
    pub const NONE: Self = Self([0; MAX_RANK]);

    /// Returns whether any dimension is padded.
    #[inline]
    pub fn any(self) -> bool {
        self != Self::NONE
    }

    /// Returns the symbol that pads `axis`.
    pub fn get(self, axis: usize) -> Option<u8> {
        self.0[axis].checked_sub(1)
    }

    /// Returns the marks with `axis` padded by `symbol` (or not padded).
    #[must_use]
    pub fn with(mut self, axis: usize, symbol: Option<u8>) -> Self {
        self.0[axis] = symbol.map_or(0, |s| s + 1);
        self
    }

    /// Returns the marks as one word, for keys.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        if !self.any() {
            return 0;
        }
        self.0.iter().fold(0, |w, &m| w << 8 | u64::from(m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguity_ignores_unit_dimensions() {
        let l = Layout::strided(&[2, 1, 3], &[3, 99, 1]).unwrap();
        assert!(l.is_contiguous());
        assert!(!Layout::strided(&[2, 3], &[1, 2]).unwrap().is_contiguous());
        assert_eq!(Layout::contiguous(&[2, 3]).unwrap().strides(), [3, 1]);
    }

    #[test]
    fn sizes_and_strides_of_two_lengths_are_an_error() {
        let error = Layout::strided(&[2, 3], &[1]).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
    }

    /// The sizes and strides, walked in row-major order: without gaps, each element follows the one before.
    fn is_dense(layout: &Layout) -> bool {
        let mut offsets = vec![0];
        for (&n, &stride) in layout.shape().iter().zip(layout.strides()) {
            offsets = offsets.iter().flat_map(|start| (0..n).map(move |i| start + i * stride)).collect();
        }
        offsets.into_iter().eq(0..layout.count())
    }

    #[test]
    fn contiguity_is_that_of_the_sizes_and_strides() {
        let mut state = 1u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % n as usize
        };
        let mut dense = 0;
        for _ in 0..20_000 {
            let rank = below(4) + 1;
            let shape: Vec<usize> = (0..rank).map(|_| below(4)).collect();
            let mut layout = Layout::contiguous(&shape).unwrap();
            for _ in 0..below(4) {
                let axis = below(rank as u32);
                let axes: Vec<usize> = (0..rank).map(|i| (i + axis) % rank).collect();
                layout = match below(4) {
                    0 => layout.permuted(&axes),
                    1 => layout.with_dim(axis, below(layout.shape()[axis] as u32 + 1)),
                    2 => Layout::strided(layout.shape(), &[below(3), below(5), 1, 1][..rank]).unwrap(),
                    _ => {
                        let wider: Vec<usize> =
                            layout.shape().iter().map(|&n| if n == 1 { below(3) + 1 } else { n }).collect();
                        layout.broadcast_to(&wider).unwrap()
                    }
                };
            }
            assert_eq!(
                layout.is_contiguous(),
                is_dense(&layout),
                "{:?} {:?}",
                layout.shape(),
                layout.strides()
            );
            dense += usize::from(layout.is_contiguous());
        }
        assert!((2000..18_000).contains(&dense), "{dense} are contiguous");
    }

    #[test]
    fn empty_layouts_are_contiguous() {
        assert!(Layout::contiguous(&[2, 0]).unwrap().is_contiguous());
        assert!(Layout::strided(&[0, 3], &[1, 7]).unwrap().is_contiguous());
    }

    #[test]
    fn strides_of_unit_dimensions_mean_nothing() {
        let a = Layout::strided(&[2, 1, 3], &[6, 99, 2]).unwrap();
        let b = Layout::strided(&[2, 1, 3], &[6, 1, 2]).unwrap();
        assert!(a.meaning().eq(b.meaning()));
        assert!(!a.meaning().eq(Layout::strided(&[2, 1, 3], &[5, 1, 2]).unwrap().meaning()));
    }

    #[test]
    fn broadcasting_repeats_unit_dimensions() {
        let l = Layout::contiguous(&[3, 1]).unwrap();
        assert_eq!(l.broadcast_to(&[2, 3, 4]).unwrap().strides(), [0, 1, 0]);
        assert!(l.broadcast_to(&[2, 2, 4]).is_none());
        assert!(l.broadcast_to(&[3]).is_none());
    }

    #[test]
    fn rank_is_limited() {
        assert!(matches!(Layout::contiguous(&[1; 7]), Err(Error::Rank { rank: 7 })));
        assert!(matches!(Layout::contiguous(&[usize::MAX, 2]), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn span_counts_what_is_touched() {
        assert_eq!(Layout::strided(&[2, 3], &[1, 2]).unwrap().span(), 6);
        assert_eq!(Layout::strided(&[4, 3], &[0, 1]).unwrap().span(), 3);
        assert_eq!(Layout::contiguous(&[0, 3]).unwrap().span(), 0);
    }
}
