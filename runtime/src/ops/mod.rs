//! Operations on tensors.
//!
//! Free functions without side effects, except [`scatter_rows`], [`rope_scatter`] and [`store`], which
//! write to a [`State`](crate::State). All are asynchronous: they check their arguments, allocate the output
//! and launch. The result is a new tensor, or a view if the function says so.
//!
//! **Arguments.** The first tensor decides the runtime and the step; every further operand may be a
//! [`Tensor`], a [`Scalar`](crate::Scalar), a [`Param`](crate::Param) or a [`State`](crate::State)
//! with the same element type. Any strides are accepted. Axes count from 0.
//!
//! **Errors.** Every function can return [`Error::DifferentRuntimes`], [`Error::OutOfMemory`],
//! [`Error::OutsideSegment`] and errors of the device; its own documentation lists the rest.
//!
//! **Broadcasting** aligns shapes at their last dimensions; a missing dimension, or one of size 1, is
//! repeated. Any other difference is [`Error::Shape`].
//!
//! **Shapes** are tuples, arrays or slices of sizes: numbers, or those of tensors (`(x.dim(0), 4)`, `&[2, 3]`,
//! `x.shape()`; `()` for a scalar). Where a number would do, too, `x.dim(axis)` does.
//!
//! **Padding.** In a bucketed function a dimension remembers that it is padded. Operations that treat
//! its elements one by one keep the mark; operations that would mix padding into real values return
//! [`Error::PaddedMix`]. Each function says what it does. Where operands meet in one dimension, all of them
//! are padded by one symbol, or are repeated there; a dimension of a fixed size does not meet a padded one,
//! also if it is as large as the bucket. Sizes of padded dimensions are no numbers ([`Dim`](crate::Dim)): a tensor
//! that is made with one is padded alike, [`size`] gives the real one on the device, and other uses are
//! [`Error::PaddedSize`].
//!
//! **Empty tensors** are accepted everywhere, except where the result has no value (the maximum or the
//! mean of an empty axis).

mod attention;
mod cache;
mod cast;
mod compare;
mod create;
mod elementwise;
mod index;
mod matmul;
mod norm;
mod reduce;
mod rope;
mod shape;

pub use crate::backend::RopeStyle;
pub use attention::{AttentionMask, attention};
pub use cache::{CacheView, cache_view};
pub use cast::cast;
pub use compare::{eq, ge, gt, le, lt, ne, where_};
pub use create::{arange, arange_step, full, full_like, ones_like, size, zeros, zeros_like};
pub use elementwise::{
    add, div, exp, gelu, gelu_tanh, log, mul, neg, relu, rsqrt, scale, silu, silu_mul, sqrt, sub, tanh,
};
pub use index::{embedding, gather, load, scatter_rows, store};
pub use matmul::{linear, linear_bias, matmul, matmul_nt};
pub use norm::{add_rms_norm, l2_normalize, layer_norm, log_softmax, rms_norm, softmax};
pub use reduce::{argmax, masked_mean, masked_sum, max, mean, sum};
pub use rope::{RopeConfig, rope, rope_scatter};
pub(crate) use shape::broadcast_as;
pub use shape::{
    broadcast_to, concat, contiguous, narrow, permute, reshape, split, split_at, squeeze, transpose,
    unsqueeze,
};

use smallvec::SmallVec;

use crate::{
    Element, Error, Result, Scope, Tensor,
    backend::{Op, View},
    base::rank::MAX_RANK,
    tensor::{Operand, Shown},
    value::layout::{Layout, Marks},
};

/// Sizes, without an allocation.
type Shape = SmallVec<[usize; MAX_RANK]>;

/// A tensor that the function already knows to belong to `scope`.
fn own<T>(op: &'static str, x: &Tensor<'_, T>) -> Result<Operand> {
    Ok(Operand { view: x.view(op)?, marks: x.raw.marks })
}

fn check_axis(op: &'static str, axis: usize, rank: usize) -> Result<()> {
    if axis < rank { Ok(()) } else { Err(Error::Axis { op, axis, rank }) }
}

/// Allocates the output of `op` and launches it.
fn compute<'s, T: Element>(
    scope: Scope<'s>,
    op: Op,
    inputs: &[View],
    shape: &[usize],
    marks: Marks,
) -> Result<Tensor<'s, T>> {
    let out = scope.empty::<T>(&op, shape, marks)?;
    launch(scope, op, inputs, &[out.raw.view()])?;
    Ok(out)
}

/// Launches, unless there is nothing to write: devices refuse empty grids.
fn launch(scope: Scope<'_>, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
    if outputs.iter().all(|v| v.layout.count() == 0) {
        return Ok(());
    }
    scope.launch(op, inputs, outputs)
}

/// The mark of a dimension in which two operands meet.
///
/// Two symbols, or one and a fixed size, would pair padding of one operand with real rows of the other.
fn meet(op: &'static str, scope: Scope<'_>, axis: usize, a: Option<u8>, b: Option<u8>) -> Result<Option<u8>> {
    if a != b {
        scope.refuse_padded(op, Marks::NONE.with(axis, a.or(b)), axis)?;
    }
    Ok(a)
}

/// Refuses padding in any of `axes`.
fn refuse(
    op: &'static str,
    scope: Scope<'_>,
    marks: Marks,
    axes: impl IntoIterator<Item = usize>,
) -> Result<()> {
    axes.into_iter().try_for_each(|axis| scope.refuse_padded(op, marks, axis))
}

/// The shape that all operands broadcast to, and its padding.
fn broadcast(op: &'static str, scope: Scope<'_>, operands: &[Operand]) -> Result<(Shape, Marks)> {
    let shapes: SmallVec<[&[usize]; 4]> = operands.iter().map(|o| o.view.layout.shape()).collect();
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut shape = Shape::from_elem(1, rank);
    let mut marks = Marks::NONE;
    for axis in 0..rank {
        // Each operand's own axis, where it has this dimension.
        let met = || {
            operands.iter().zip(&shapes).filter_map(move |(operand, dims)| {
                let own = (axis + dims.len()).checked_sub(rank)?;
                Some((dims[own], operand.marks.get(own)))
            })
        };
        // First of all, so that what is refused does not depend on how large the bucket is. A dimension of size 1
        // without padding is repeated, whatever it meets.
        let mut symbols = met().filter(|(n, mark)| *n != 1 || mark.is_some()).map(|(_, mark)| mark);
        let first = symbols.next().flatten();
        let mark = symbols.try_fold(first, |mark, found| meet(op, scope, axis, mark, found))?;
        for (n, _) in met() {
            if n != 1 && shape[axis] != 1 && n != shape[axis] {
                let shown: SmallVec<[Shown<'_>; 4]> = operands.iter().map(Into::into).collect();
                return Err(scope.shape_error(
                    op,
                    &shown,
                    format!(
                        "dimension {axis} is {} and {n}; sizes aligned at the last dimension must be equal, or 1",
                        shape[axis]
                    ),
                ));
            }
            if n != 1 {
                shape[axis] = n;
            }
        }
        marks = marks.with(axis, mark);
    }
    Ok((shape, marks))
}

/// `view` repeated to `shape`.
fn spread(op: &'static str, view: View, shape: &[usize]) -> Result<View> {
    match view.layout.broadcast_to(shape) {
        Some(layout) => Ok(View { layout, ..view }),
        None => Err(Error::shape(op, &[view.layout.shape(), shape], NOT_SPREAD)),
    }
}

/// Why a shape cannot be repeated to another one.
const NOT_SPREAD: &str = "the first does not broadcast to the second; its sizes, aligned at the last dimension, must be equal or 1";

/// `shape` without `axis`.
fn without(shape: &[usize], axis: usize) -> Shape {
    shape.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, &n)| n).collect()
}

/// `marks` of a tensor that lost `axis`.
fn marks_without(marks: Marks, axis: usize) -> Marks {
    (axis..MAX_RANK).fold(marks, |m, i| m.with(i, (i + 1 < MAX_RANK).then(|| marks.get(i + 1)).flatten()))
}

/// `layout` with a dimension of size 1 in front; the caller knows that there is room for it.
fn lifted(layout: &Layout) -> Result<Layout> {
    let mut shape = Shape::from_elem(1, 1);
    let mut strides = Shape::from_elem(0, 1);
    shape.extend_from_slice(layout.shape());
    strides.extend_from_slice(layout.strides());
    Layout::strided(&shape, &strides)
}

#[cfg(test)]
mod tests;
