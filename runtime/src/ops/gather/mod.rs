//! Rows and slices picked by indices.

use smallvec::SmallVec;

use self::operation::{Counts, Embedding, Gather};
use super::{
    check::{Shape, check_axis},
    launch::compute,
    quantized,
};
use crate::{
    AsOperand, AsWeight, Element, Result, Scope, Tensor,
    backend::View,
    base::rank::MAX_RANK,
    tensor::weight::Stored,
    value::layout::{Layout, PaddedDims},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

pub(super) use cpu::picked as picked_rows;
#[cfg(feature = "cuda")]
pub(super) use cuda::Picks;
pub(super) use operation::{Counts as PickCounts, Indices};

/// Returns the rows of `table` (`[V, D]`) at `ids` (any shape): the result is `ids`' shape and `D`.
///
/// Corresponds to `torch.nn.functional.embedding`.
///
/// An id without a row is a fault, which the next read reports; its row reads as zeros. Padding of `ids` and
/// of `D` propagates; an id in the padding of `V` has no row, and ids that are padding themselves are not
/// faults. The values of a table in [blocks](crate::Weight) are those of its elements, rounded to `T`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let table = step.tensor(&[3, 2], &[0.0f32, 1.0, 10.0, 11.0, 20.0, 21.0])?;
/// let ids = step.tensor(&[2], &[2u32, 0])?;
/// let y = ops::embedding(&ids, &table)?;
/// assert_eq!(step.read(&y)?, [20.0, 21.0, 0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if `table` does not have two dimensions;
/// [`Error::Rank`](crate::Error::Rank). Later, at a read:
/// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange).
pub fn embedding<'s, T: Element>(
    ids: &Tensor<'s, u32>,
    table: &(impl AsWeight<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "embedding";
    let scope = ids.scope();
    let table = match table.weight(NAME, scope)?.0 {
        Stored::Floats(table) => table,
        Stored::Blocks(table) => return quantized::embedding(NAME, ids, table),
    };
    let &[_, d] = table.view.layout.shape() else {
        let shapes = [ids.into(), (&table).into()];
        return Err(scope.shape_error(NAME, &shapes, "the table must be `[V, D]`, one row for each id"));
    };
    let mut shape: Vec<usize> = ids.sizes().to_vec();
    shape.push(d);
    Layout::contiguous(&shape)?;
    let marks = ids.raw.marks.with(ids.rank(), table.marks.get(1));
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[ids.view(NAME)?, table.view]);
    let counts = add_counts(scope, &mut inputs, ids.raw.marks, table.marks.get(0));
    compute(scope, Embedding { counts }, &inputs, &shape, marks)
}

/// Slices of `x` along `axis` at `index` (`[N]`): the result is `x`'s shape with `N` in place of
/// that axis.
///
/// Corresponds to `torch.index_select`; `torch.gather`, which has an index for each element, is another operation.
///
/// An index out of range is a fault, which the next read reports; its slice reads as zeros. The axis takes
/// its padding from `index`; an index in the padding of `axis` of `x` is out of range, and indices that are
/// padding themselves are not faults. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let index = step.tensor(&[2], &[2u32, 0])?;
/// let y = ops::gather(&x, 1, &index)?;
/// assert_eq!(step.read(&y)?, [3.0, 1.0, 6.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `index` does not
/// have one dimension. Later, at a read: [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange).
pub fn gather<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    picked("gather", x, axis, index)
}

/// [`gather`] under another name.
pub(super) fn picked<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    index: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = x.scope();
    check_axis(name, axis, x.rank())?;
    let index = index.operand(name, scope)?;
    let &[n] = index.view.layout.shape() else {
        let shapes = [x.into(), (&index).into()];
        return Err(scope.shape_error(name, &shapes, "the index must have one dimension, `[N]`"));
    };
    let mut shape: Shape = x.sizes().into();
    shape[axis] = n;
    let marks = x.raw.marks.with(axis, index.marks.get(0));
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[x.view(name)?, index.view]);
    let counts = add_counts(scope, &mut inputs, index.marks, x.raw.marks.get(axis));
    compute(scope, Gather { name, axis, counts }, &inputs, &shape, marks)
}

/// Lists the real sizes of padded operands: of the index, whose padding may have any contents, and of the
/// rows, whose padding is out of range.
pub(super) fn add_counts(
    scope: Scope<'_>,
    inputs: &mut SmallVec<[View; 4]>,
    index: PaddedDims,
    rows: Option<u8>,
) -> Counts {
    let places = (0..MAX_RANK).map(|axis| (axis, index.get(axis))).chain([(Counts::ROWS, rows)]);
    let mut counts = Counts::NONE;
    for (place, symbol) in places {
        if let Some(count) = symbol.and_then(|symbol| scope.real_count(symbol)) {
            inputs.push(count);
            counts = counts.with(place);
        }
    }
    counts
}
