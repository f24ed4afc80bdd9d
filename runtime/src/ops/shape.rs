//! Views and rearrangements.

use smallvec::SmallVec;

use super::{Shape, check_axis, compute, launch, marks_without, meet, refuse};
use crate::{
    Element, Error, Result, Tensor,
    backend::{Op, View},
    layout::{Layout, MAX_RANK, Marks},
};

/// The layout that shows the elements of `layout`, in row-major order, as `shape`; `None` when that
/// takes a copy. Both have the same number of elements.
pub(super) fn viewed(layout: &Layout, shape: &[usize]) -> Option<Layout> {
    if layout.count() == 0 || layout.is_contiguous() {
        return Layout::contiguous(shape).ok();
    }
    let old: SmallVec<[(usize, usize); MAX_RANK]> =
        layout.shape().iter().copied().zip(layout.strides().iter().copied()).filter(|d| d.0 != 1).collect();
    let mut strides = Shape::from_elem(0, shape.len());
    let (mut from, mut to) = (old.len(), shape.len());
    while from > 0 {
        // Neighbours that lie row-major among themselves act as one dimension ..
        from -= 1;
        let (mut n, step) = old[from];
        while from > 0 && old[from - 1].1 == n * step {
            from -= 1;
            n *= old[from].0;
        }
        // .. which new dimensions may divide, but not cross.
        let mut covered = 1;
        while covered < n && to > 0 {
            to -= 1;
            strides[to] = covered * step;
            covered *= shape[to];
        }
        if covered != n {
            return None;
        }
    }
    Layout::strided(shape, &strides).ok()
}

/// Where padded dimensions of `from` are in `to`.
///
/// A dimension is the same one if it has the same size and as many elements in front of it. With
/// dimensions of size 1 several places fit: the same axis counted from the front, then from the
/// back, then the first.
fn carry_marks(marks: Marks, from: &[usize], to: &[usize]) -> Result<Marks, usize> {
    let mut out = Marks::NONE;
    for axis in 0..from.len() {
        let Some(symbol) = marks.get(axis) else { continue };
        let before: usize = from[..axis].iter().product();
        let after: usize = from[axis + 1..].iter().product();
        let fits = |&place: &usize| {
            to.get(place) == Some(&from[axis])
                && to[..place].iter().product::<usize>() == before
                && to[place + 1..].iter().product::<usize>() == after
                && out.get(place).is_none()
        };
        let from_back = (axis + to.len()).checked_sub(from.len());
        let place = std::iter::once(axis).chain(from_back).chain(0..to.len()).find(fits).ok_or(axis)?;
        out = out.with(place, Some(symbol));
    }
    Ok(out)
}

/// The elements of `x`, in row-major order, as `shape`.
///
/// A view where the strides allow it, a copy elsewhere. A padded dimension must stay a dimension of
/// its own.
///
/// # Errors
/// [`Error::Shape`] when the number of elements differs; [`Error::Rank`]; [`Error::PaddedMix`] when
/// a padded dimension would be merged or divided.
pub fn reshape<'s, T: Element>(x: &Tensor<'s, T>, shape: &[usize]) -> Result<Tensor<'s, T>> {
    const NAME: &str = "reshape";
    let target = Layout::contiguous(shape)?;
    if target.count() != x.count() {
        let why = format!(
            "the first has {} elements, the second {}; they must be equal",
            x.count(),
            target.count()
        );
        return Err(Error::shape(NAME, &[x.shape(), shape], why));
    }
    let marks = match carry_marks(x.raw.marks, x.shape(), shape) {
        Ok(marks) => marks,
        Err(axis) => return x.scope().refuse_padded(NAME, x.raw.marks, axis).map(|()| x.clone()),
    };
    if let Some(layout) = viewed(&x.raw.layout, shape) {
        return Ok(x.alias(layout, 0, marks));
    }
    let source = x.view(NAME)?;
    let out = x.scope().empty::<T>(&Op::Copy, shape, marks)?;
    let as_source = View { layout: Layout::contiguous(x.shape())?, ..out.raw.view() };
    launch(x.scope(), Op::Copy, &[source], &[as_source])?;
    Ok(out)
}

/// `x` itself if its elements lie in row-major order without gaps, a copy that does elsewhere.
///
/// # Errors
/// Only those of every operation (see [`ops`](crate::ops)).
pub fn contiguous<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    if x.raw.layout.is_contiguous() {
        return Ok(x.clone());
    }
    compute(x.scope(), Op::Copy, &[x.view("contiguous")?], x.shape(), x.raw.marks)
}

/// Elements `start .. start + len` along `axis`, as a view.
///
/// Of a padded axis only all of it can be taken (the mark stays) or the first element (always real,
/// the mark goes).
///
/// # Errors
/// [`Error::Axis`]; [`Error::Shape`] when the range is not inside the axis; [`Error::PaddedMix`] for
/// another range of a padded axis.
pub fn narrow<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    start: usize,
    len: usize,
) -> Result<Tensor<'s, T>> {
    narrow_as("narrow", x, axis, start, len)
}

fn narrow_as<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    start: usize,
    len: usize,
) -> Result<Tensor<'s, T>> {
    let layout = narrowed(name, &x.raw.layout, axis, start, len)?;
    let marks = match (start, len) {
        (0, all) if all == x.dim(axis) => x.raw.marks,
        (0, 1) => x.raw.marks.with(axis, None),
        _ => {
            refuse(name, x.scope(), x.raw.marks, [axis])?;
            x.raw.marks
        }
    };
    // An empty view touches nothing, so it need not point past the last element.
    let offset = if layout.count() == 0 { 0 } else { start * layout.strides()[axis] };
    Ok(x.alias(layout, offset, marks))
}

/// The narrowed layout, checked; the caller moves the address.
pub(super) fn narrowed(
    name: &'static str,
    layout: &Layout,
    axis: usize,
    start: usize,
    len: usize,
) -> Result<Layout> {
    check_axis(name, axis, layout.rank())?;
    let n = layout.shape()[axis];
    if start.checked_add(len).is_none_or(|end| end > n) {
        let why = format!("{len} elements from {start} on are not inside axis {axis}, which has {n}");
        return Err(Error::shape(name, &[layout.shape()], why));
    }
    Ok(layout.with_dim(axis, len))
}

/// Swaps two axes, as a view; padding marks move along.
///
/// # Errors
/// [`Error::Axis`].
pub fn transpose<'s, T: Element>(x: &Tensor<'s, T>, a: usize, b: usize) -> Result<Tensor<'s, T>> {
    check_axis("transpose", a, x.rank())?;
    check_axis("transpose", b, x.rank())?;
    let mut axes: Shape = (0..x.rank()).collect();
    axes.swap(a, b);
    permute(x, &axes)
}

/// Reorders all axes, as a view: dimension `i` of the result is dimension `axes[i]` of `x`. Padding
/// marks move along.
///
/// # Errors
/// [`Error::Axis`]; [`Error::Argument`] when `axes` does not name every axis once.
pub fn permute<'s, T: Element>(x: &Tensor<'s, T>, axes: &[usize]) -> Result<Tensor<'s, T>> {
    check_permutation("permute", axes, x.rank())?;
    let marks = axes.iter().enumerate().fold(Marks::NONE, |m, (to, &from)| m.with(to, x.raw.marks.get(from)));
    Ok(x.alias(x.raw.layout.permuted(axes), 0, marks))
}

pub(super) fn check_permutation(name: &'static str, axes: &[usize], rank: usize) -> Result<()> {
    for &axis in axes {
        check_axis(name, axis, rank)?;
    }
    if axes.len() != rank || (0..rank).any(|axis| !axes.contains(&axis)) {
        let why = format!("axes {axes:?} of a tensor of rank {rank}; each of its axes must be there once");
        return Err(Error::Argument { op: name, why });
    }
    Ok(())
}

/// A new dimension of size 1 at `axis` (at most the rank), as a view.
///
/// # Errors
/// [`Error::Axis`]; [`Error::Rank`].
pub fn unsqueeze<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    if axis > x.rank() {
        return Err(Error::Axis { op: "unsqueeze", axis, rank: x.rank() });
    }
    let (mut shape, mut strides): (Shape, Shape) = (x.shape().into(), x.raw.layout.strides().into());
    // The stride that a contiguous tensor would have there, so that it stays contiguous.
    let stride = if axis < x.rank() { shape[axis] * strides[axis] } else { 1 };
    shape.insert(axis, 1);
    strides.insert(axis, stride);
    let layout = Layout::strided(&shape, &strides)?;
    let marks = (0..x.rank())
        .fold(Marks::NONE, |m, from| m.with(from + usize::from(from >= axis), x.raw.marks.get(from)));
    Ok(x.alias(layout, 0, marks))
}

/// Without the dimension `axis`, whose size is 1, as a view.
///
/// # Errors
/// [`Error::Axis`]; [`Error::Shape`] when the size is not 1; [`Error::PaddedMix`] when it is padded
/// (it is 1 in this bucket only; `narrow(x, axis, 0, 1)` says that the first is meant).
pub fn squeeze<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    check_axis("squeeze", axis, x.rank())?;
    refuse("squeeze", x.scope(), x.raw.marks, [axis])?;
    if x.dim(axis) != 1 {
        let why = format!("axis {axis} has {} elements; only a dimension of size 1 can go", x.dim(axis));
        return Err(Error::shape("squeeze", &[x.shape()], why));
    }
    let (mut shape, mut strides): (Shape, Shape) = (x.shape().into(), x.raw.layout.strides().into());
    shape.remove(axis);
    strides.remove(axis);
    Ok(x.alias(Layout::strided(&shape, &strides)?, 0, marks_without(x.raw.marks, axis)))
}

/// `x` repeated to `shape`, as a view: sizes, aligned at the last dimension, are equal or 1 in `x`.
///
/// Padding marks move along; a padded dimension of size 1 that is repeated loses its mark.
///
/// # Errors
/// [`Error::Shape`]; [`Error::Rank`].
pub fn broadcast_to<'s, T: Element>(x: &Tensor<'s, T>, shape: &[usize]) -> Result<Tensor<'s, T>> {
    Layout::contiguous(shape)?;
    let layout = super::spread("broadcast_to", x.raw.view(), shape)?.layout;
    let lead = shape.len() - x.rank();
    let marks = (0..x.rank())
        .filter(|&axis| x.dim(axis) == shape[axis + lead])
        .fold(Marks::NONE, |m, axis| m.with(axis + lead, x.raw.marks.get(axis)));
    Ok(x.alias(layout, 0, marks))
}

/// Joins tensors along `axis`; all other sizes are equal.
///
/// Padding marks of the other dimensions unite.
///
/// # Errors
/// [`Error::Argument`] for no tensor; [`Error::Axis`]; [`Error::Shape`]; [`Error::PaddedMix`] when
/// `axis` is padded in any of them.
pub fn concat<'s, T: Element>(tensors: &[&Tensor<'s, T>], axis: usize) -> Result<Tensor<'s, T>> {
    const NAME: &str = "concat";
    let Some((first, rest)) = tensors.split_first() else {
        return Err(Error::Argument { op: NAME, why: "no tensor is given; at least one is needed".into() });
    };
    let scope = first.scope();
    check_axis(NAME, axis, first.rank())?;
    refuse(NAME, scope, first.raw.marks, [axis])?;
    let mut shape: Shape = first.shape().into();
    let mut marks = first.raw.marks;
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[first.view(NAME)?]);
    for x in rest {
        if !std::ptr::eq(x.rt, scope.rt) {
            return Err(Error::DifferentRuntimes { op: NAME });
        }
        if x.rank() != shape.len() || (0..shape.len()).any(|i| i != axis && x.dim(i) != shape[i]) {
            let shapes: Vec<&[usize]> = tensors.iter().map(|t| t.shape()).collect();
            return Err(Error::shape(
                NAME,
                &shapes,
                format!("all sizes but that of axis {axis} must be equal"),
            ));
        }
        refuse(NAME, scope, x.raw.marks, [axis])?;
        for i in 0..shape.len() {
            marks = marks.with(i, meet(NAME, scope, i, marks.get(i), x.raw.marks.get(i))?);
        }
        shape[axis] =
            shape[axis].checked_add(x.dim(axis)).ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })?;
        inputs.push(x.view(NAME)?);
    }
    // A part without elements has no address worth baking.
    inputs.retain(|v| v.layout.count() > 0);
    compute(scope, Op::Concat { axis }, &inputs, &shape, marks)
}

/// `n` parts of equal size along `axis`, as views.
///
/// # Errors
/// [`Error::Axis`]; [`Error::Shape`] when the axis does not divide into `n` parts;
/// [`Error::PaddedMix`] when it is padded and `n` is not 1.
pub fn split<'s, T: Element>(x: &Tensor<'s, T>, axis: usize, n: usize) -> Result<Vec<Tensor<'s, T>>> {
    check_axis("split", axis, x.rank())?;
    let size = x.dim(axis);
    if n == 0 || !size.is_multiple_of(n) {
        let why = format!("axis {axis} has {size} elements, which do not divide into {n} equal parts");
        return Err(Error::shape("split", &[x.shape()], why));
    }
    parts("split", x, axis, std::iter::repeat_n(size / n, n))
}

/// Parts of the given sizes along `axis`, in order, as views.
///
/// # Errors
/// [`Error::Axis`]; [`Error::Shape`] when the sizes do not sum up to the axis; [`Error::PaddedMix`]
/// when it is padded and there is more than one part.
pub fn split_at<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    sizes: &[usize],
) -> Result<Vec<Tensor<'s, T>>> {
    check_axis("split_at", axis, x.rank())?;
    let total = sizes.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    if total != Some(x.dim(axis)) {
        let why =
            format!("the parts {sizes:?} must sum up to axis {axis}, which has {} elements", x.dim(axis));
        return Err(Error::shape("split_at", &[x.shape()], why));
    }
    parts("split_at", x, axis, sizes.iter().copied())
}

fn parts<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    sizes: impl Iterator<Item = usize>,
) -> Result<Vec<Tensor<'s, T>>> {
    let mut start = 0;
    sizes
        .map(|len| {
            let part = narrow_as(name, x, axis, start, len);
            start += len;
            part
        })
        .collect()
}
