//! A product reduced to its relevant properties, as the library and our own kernels see it.

use smallvec::SmallVec;

use crate::{DType, backend::View, base::rank::MAX_RANK, value::layout::Layout};

/// Strides of one matrix, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Strides {
    /// Between rows.
    pub(crate) row: usize,
    /// Between columns.
    pub(crate) col: usize,
}

/// One dimension of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchDim {
    /// The size of the dimension.
    pub(crate) size: usize,
    /// Strides of the left side, the right side, the bias and the result.
    pub(crate) strides: [usize; 4],
}

/// `y[.., m, n] = a[.., m, k] x b[.., k, n] (+ bias[.., m, n])`.
///
/// Dimensions of size 1 are removed from the batch, dimensions are folded into the rows where possible, and
/// adjacent contiguous dimensions are merged. Strides along dimensions of size 1 are meaningless.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Element type of everything.
    pub(crate) dtype: DType,
    /// Rows of the result.
    pub(crate) m: usize,
    /// Columns of the result.
    pub(crate) n: usize,
    /// The size of the dimension that is summed over.
    pub(crate) k: usize,
    /// Addresses of the left side, the right side, the bias (0: none) and the result.
    pub(crate) addrs: [u64; 4],
    /// Their strides, in this order.
    pub(crate) strides: [Strides; 4],
    /// The batch, outermost first.
    pub(crate) batch: SmallVec<[BatchDim; 4]>,
}

/// Index of the left side in the arrays of [`Problem`].
pub(crate) const A: usize = 0;
/// Index of the right side.
pub(crate) const B: usize = 1;
/// Index of the bias.
pub(crate) const BIAS: usize = 2;
/// Index of the result.
pub(crate) const Y: usize = 3;

impl Problem {
    /// Returns the product of the views of a [`Product`](crate::backend::cuda::kernels::Product). `None`
    /// if the views are not those of a product; the core above does not launch such views.
    pub(crate) fn new(inputs: &[View], output: &View) -> Option<Self> {
        let (a, b) = (inputs.first()?, inputs.get(1)?);
        let bias = inputs.get(2);
        let rank = output.layout.rank();
        let lead = rank.checked_sub(2)?;
        if inputs.iter().any(|v| v.layout.rank() != rank) || rank > MAX_RANK {
            return None;
        }
        let strides =
            |layout: &Layout| Strides { row: layout.strides()[lead], col: layout.strides()[lead + 1] };
        let of = |view: Option<&View>| view.map(|v| strides(&v.layout)).unwrap_or_default();
        let along = |view: Option<&View>, axis: usize| view.map_or(0, |v| v.layout.strides()[axis]);
        let mut problem = Self {
            dtype: output.dtype,
            m: output.layout.shape()[lead],
            n: output.layout.shape()[lead + 1],
            k: a.layout.shape()[lead + 1],
            addrs: [a.addr, b.addr, bias.map_or(0, |v| v.addr), output.addr],
            strides: [of(Some(a)), of(Some(b)), of(bias), of(Some(output))],
            batch: (0..lead)
                .map(|axis| BatchDim {
                    size: output.layout.shape()[axis],
                    strides: [
                        along(Some(a), axis),
                        along(Some(b), axis),
                        along(bias, axis),
                        along(Some(output), axis),
                    ],
                })
                .filter(|dim| dim.size != 1)
                .collect(),
        };
        while problem.fold() {}
        problem.merge();
        Some(problem)
    }

    /// Makes the innermost dimension of the batch part of the rows, if all of it is multiplied by the same
    /// right side.
    fn fold(&mut self) -> bool {
        let Some(&BatchDim { size, strides }) = self.batch.last() else { return false };
        let rows = [A, BIAS, Y];
        if strides[B] != 0
            || (self.m != 1 && rows.iter().any(|&i| strides[i] != self.m * self.strides[i].row))
        {
            return false;
        }
        if self.m == 1 {
            rows.iter().for_each(|&i| self.strides[i].row = strides[i]);
        }
        self.m *= size;
        self.batch.pop();
        true
    }

    /// Merges two dimensions that are contiguous in every operand.
    fn merge(&mut self) {
        let mut merged = SmallVec::<[BatchDim; 4]>::new();
        for &dim in &self.batch {
            match merged.last_mut() {
                Some(outer) if (0..4).all(|i| outer.strides[i] == dim.size * dim.strides[i]) => {
                    *outer = BatchDim { size: outer.size * dim.size, strides: dim.strides };
                }
                _ => merged.push(dim),
            }
        }
        self.batch = merged;
    }

    /// Number of products.
    pub(crate) fn batches(&self) -> usize {
        self.batch.iter().map(|dim| dim.size).product()
    }

    /// Returns whether there is a bias.
    pub(crate) fn has_bias(&self) -> bool {
        self.addrs[BIAS] != 0
    }

    /// Returns whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.batches() == 0
    }
}
