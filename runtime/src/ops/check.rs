//! Checks and computations of operations before they launch: axes, padding, shapes.

pub(super) use crate::tensor::broadcast::{NOT_SPREAD, Shape, broadcast, meet, spread};
use crate::{
    Error, Result, Scope,
    base::rank::MAX_RANK,
    value::layout::{Layout, PaddedDims},
};

pub(super) fn check_axis(op: &'static str, axis: usize, rank: usize) -> Result<()> {
    if axis < rank { Ok(()) } else { Err(Error::Axis { op, axis, rank }) }
}

/// Refuses padding in any of `axes`.
pub(super) fn refuse(
    op: &'static str,
    scope: Scope<'_>,
    marks: PaddedDims,
    axes: impl IntoIterator<Item = usize>,
) -> Result<()> {
    axes.into_iter().try_for_each(|axis| scope.refuse_padded(op, marks, axis))
}

/// `shape` without `axis`.
pub(super) fn without(shape: &[usize], axis: usize) -> Shape {
    shape.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, &n)| n).collect()
}

/// `marks` of a tensor that lost `axis`.
pub(super) fn marks_without(marks: PaddedDims, axis: usize) -> PaddedDims {
    (axis..MAX_RANK).fold(marks, |m, i| m.with(i, (i + 1 < MAX_RANK).then(|| marks.get(i + 1)).flatten()))
}

/// `layout` with a dimension of size 1 in front; the caller knows that there is room for it.
pub(super) fn lifted(layout: &Layout) -> Result<Layout> {
    let mut shape = Shape::from_elem(1, 1);
    let mut strides = Shape::from_elem(0, 1);
    shape.extend_from_slice(layout.shape());
    strides.extend_from_slice(layout.strides());
    Layout::strided(&shape, &strides)
}

pub(super) fn check_eps(name: &'static str, eps: f32) -> Result<()> {
    if eps.is_finite() && eps >= 0.0 {
        return Ok(());
    }
    Err(Error::Argument { op: name, reason: format!("eps is {eps}; it must be finite and not negative") })
}
