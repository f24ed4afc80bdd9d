//! Checks and computations of operations before they launch: axes, padding, shapes.

pub(super) use crate::tensor::broadcast::{NOT_SPREAD, Shape, broadcast, meet, spread};
use crate::{
    Error, Real, Result, Scope,
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

pub(super) fn check_eps<T: Real>(name: &'static str, eps: f64) -> Result<()> {
    if computed::<T>(eps).is_finite() && eps >= 0.0 {
        return Ok(());
    }
    let reason = format!("eps is {}; it must be finite and not negative", shown(eps));
    Err(Error::Argument { op: name, reason })
}

/// A number as one of the type that elements `T` are computed in.
pub(super) fn computed<T: Real>(number: f64) -> f64 {
    if T::DTYPE.is_computed_in_f32() { f64::from(number as f32) } else { number }
}

/// A number with the digits that the caller wrote: of one that was an `f32`, an `f64` has more.
pub(super) fn shown(number: f64) -> String {
    let single = number as f32;
    if f64::from(single) == number { single.to_string() } else { number.to_string() }
}
