//! Views and rearrangements.

use smallvec::SmallVec;

use super::{
    check::{Shape, check_axis, marks_without, meet, refuse},
    launch::{compute, launch},
};
use crate::{
    Element, Error, IntoDim, IntoShape, Result, Scope, Tensor,
    backend::View,
    base::rank::MAX_RANK,
    memory::COPY,
    tensor::{Shown, shape::Given},
    value::{
        dim::MarkedSize,
        layout::{Layout, PaddedDims},
    },
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
        // Neighbours that are row-major among themselves act as one dimension ..
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

/// The sizes of a shape, and which of them are padded.
#[derive(Clone, Copy)]
pub(super) struct Padded<'a> {
    pub(super) sizes: &'a [usize],
    pub(super) marks: PaddedDims,
}

/// Checks that the padded dimensions of `from` are those of `to`, each with as many elements before and after
/// it; otherwise returns a mark that makes the difference, with its axis.
pub(super) fn same_padding(from: Padded<'_>, to: Padded<'_>) -> Result<(), (PaddedDims, usize)> {
    // Only fixed sizes: those of padded dimensions are equal if the symbols are.
    let places = |Padded { sizes, marks }: Padded<'_>| -> SmallVec<[(usize, u8, usize); MAX_RANK]> {
        let fixed = |axes: std::ops::Range<usize>| -> usize {
            axes.filter(|&axis| marks.get(axis).is_none()).map(|axis| sizes[axis]).product()
        };
        let padded = (0..sizes.len()).filter_map(|axis| Some((axis, marks.get(axis)?)));
        padded.map(|(axis, symbol)| (fixed(0..axis), symbol, axis)).collect()
    };
    let (old, new) = (places(from), places(to));
    for i in 0..old.len().max(new.len()) {
        match (old.get(i), new.get(i)) {
            (Some(a), Some(b)) if (a.0, a.1) == (b.0, b.1) => {}
            (Some(a), _) => return Err((from.marks, a.2)),
            (None, Some(b)) => return Err((to.marks, b.2)),
            (None, None) => {}
        }
    }
    Ok(())
}

/// Returns the elements of `x`, in row-major order, as `shape`.
///
/// Corresponds to `torch.reshape`.
///
/// Returns a view if the strides allow it, and otherwise a copy. A padded dimension must remain a separate
/// dimension, and is written as one: `reshape(x, (x.dim(0), heads, size))`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1u32, 2, 3, 4, 5, 6])?;
/// let y = ops::reshape(&x, &[3, 2])?;
/// assert_eq!(y.shape(), [3, 2]);
/// assert_eq!(step.read(&y)?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the number of elements differs; [`Error::Rank`]; [`Error::PaddedMix`] if a
/// padded dimension would be merged or divided, or `shape` has a number in its place.
pub fn reshape<'s, T: Element>(x: &Tensor<'s, T>, shape: impl IntoShape<'s>) -> Result<Tensor<'s, T>> {
    const NAME: &str = "reshape";
    let Given { sizes, marks } = x.scope().resolve(NAME, shape.into_sizes())?;
    let (shape, elements) = (&sizes[..], x.raw.layout.count());
    let target = Layout::contiguous(shape)?;
    if let Err((marks, axis)) =
        same_padding(Padded { sizes: x.sizes(), marks: x.raw.marks }, Padded { sizes: shape, marks })
    {
        refuse(NAME, x.scope(), marks, [axis])?;
    }
    if target.count() != elements {
        let count = target.count();
        let reason = format!("the first has {elements} elements, the second {count}; they must be equal");
        return Err(x.scope().shape_error(NAME, &[x.into(), Shown(shape, marks)], reason));
    }
    if let Some(layout) = viewed(&x.raw.layout, shape) {
        return Ok(x.alias(layout, 0, marks));
    }
    let source = x.view(NAME)?;
    let out = x.scope().empty::<T>(&COPY, shape, marks)?;
    let as_source = View { layout: Layout::contiguous(x.sizes())?, ..out.raw.view() };
    launch(x.scope(), COPY, &[source], &[as_source])?;
    Ok(out)
}

/// Returns `x` itself if its elements are in row-major order without gaps, and otherwise a copy that is.
///
/// Corresponds to `torch.Tensor.contiguous`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1u32, 2, 3, 4])?;
/// let y = ops::contiguous(&ops::transpose(&x, 0, 1)?)?;
/// assert_eq!(step.read(&y)?, [1, 3, 2, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn contiguous<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    if x.raw.layout.is_contiguous() {
        return Ok(x.clone());
    }
    compute(x.scope(), COPY, &[x.view("contiguous")?], x.sizes(), x.raw.marks)
}

/// Returns the elements `start .. start + len` along `axis`, as a view.
///
/// Corresponds to `torch.narrow`.
///
/// `len` may be the size of a padded dimension, as in `narrow(&positions, 0, 0, x.dim(0))`: the result is
/// then padded in the same way. Of an axis that is itself padded, only all of it can be taken
/// (`narrow(x, 0, 0, x.dim(0))`), or the first element (`narrow(x, 0, 0, 1)`: it is always real, so the
/// result is not padded there).
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1u32, 2, 3, 4, 5, 6])?;
/// let y = ops::narrow(&x, 1, 1, 2)?;
/// assert_eq!(step.read(&y)?, [2, 3, 5, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] if the range is not inside the axis; [`Error::PaddedMix`] for
/// another range of a padded axis; [`Error::PaddedSize`] for a `start` that is not a number.
pub fn narrow<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    start: impl IntoDim<'s>,
    len: impl IntoDim<'s>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "narrow";
    let start = x.scope().resolve_number(NAME, start.into_dim())?;
    narrow_as(NAME, x, axis, start, x.scope().resolve_dim(NAME, len.into_dim())?)
}

fn narrow_as<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    start: usize,
    len: MarkedSize,
) -> Result<Tensor<'s, T>> {
    check_axis(name, axis, x.rank())?;
    let marks = narrowed_marks(name, x.scope(), x.raw.marks, axis, start, len)?;
    let layout = narrowed(name, Some(x.scope()), &x.raw.layout, marks, axis, start, len.size)?;
    // An empty view touches nothing, so it need not point past the last element.
    let offset = if layout.count() == 0 { 0 } else { start * layout.strides()[axis] };
    Ok(x.alias(layout, offset, marks))
}

/// Returns the padding of a narrowed tensor, or an error, which does not depend on the size of the bucket.
pub(super) fn narrowed_marks(
    name: &'static str,
    scope: Scope<'_>,
    marks: PaddedDims,
    axis: usize,
    start: usize,
    len: MarkedSize,
) -> Result<PaddedDims> {
    let whole = start == 0 && len.symbol == marks.get(axis);
    let first = start == 0 && len == MarkedSize::fixed(1);
    if !whole && !first {
        refuse(name, scope, marks, [axis])?;
    }
    Ok(marks.with(axis, len.symbol))
}

/// Returns the narrowed layout, checked; the caller adjusts the address. `marks` are those of the result, for
/// the error: its length may be padded where `layout` is not.
pub(super) fn narrowed(
    name: &'static str,
    scope: Option<Scope<'_>>,
    layout: &Layout,
    marks: PaddedDims,
    axis: usize,
    start: usize,
    len: usize,
) -> Result<Layout> {
    check_axis(name, axis, layout.rank())?;
    let n = layout.shape()[axis];
    if start.checked_add(len).is_none_or(|end| end > n) {
        let reason = format!("{len} elements from {start} on are not inside axis {axis}, which has {n}");
        return Err(match scope {
            Some(scope) => scope.shape_error(name, &[Shown(layout.shape(), marks)], reason),
            None => Error::shape(name, &[layout.shape()], reason),
        });
    }
    Ok(layout.with_dim(axis, len))
}

/// Swaps two axes, as a view; padding marks move along.
///
/// Corresponds to `torch.transpose`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1u32, 2, 3, 4, 5, 6])?;
/// let y = ops::transpose(&x, 0, 1)?;
/// assert_eq!(y.shape(), [3, 2]);
/// assert_eq!(step.read(&y)?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`].
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
/// Corresponds to `torch.permute`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2, 3], &[1u32, 2, 3, 4, 5, 6])?;
/// let y = ops::permute(&x, &[2, 0, 1])?;
/// assert_eq!(y.shape(), [3, 1, 2]);
/// assert_eq!(step.read(&y)?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Argument`] if `axes` does not name every axis once.
pub fn permute<'s, T: Element>(x: &Tensor<'s, T>, axes: &[usize]) -> Result<Tensor<'s, T>> {
    check_permutation("permute", axes, x.rank())?;
    Ok(x.alias(x.raw.layout.permuted(axes), 0, permuted_marks(x.raw.marks, axes)))
}

pub(super) fn permuted_marks(marks: PaddedDims, axes: &[usize]) -> PaddedDims {
    axes.iter().enumerate().fold(PaddedDims::NONE, |m, (to, &from)| m.with(to, marks.get(from)))
}

pub(super) fn check_permutation(name: &'static str, axes: &[usize], rank: usize) -> Result<()> {
    for &axis in axes {
        check_axis(name, axis, rank)?;
    }
    if axes.len() != rank || (0..rank).any(|axis| !axes.contains(&axis)) {
        let reason = format!("axes {axes:?} of a tensor of rank {rank}; each of its axes must be there once");
        return Err(Error::Argument { op: name, reason });
    }
    Ok(())
}

/// Adds a new dimension of size 1 at `axis` (at most the rank), as a view.
///
/// Corresponds to `torch.unsqueeze`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[0u32; 6])?;
/// assert_eq!(ops::unsqueeze(&x, 1)?.shape(), [2, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Rank`].
pub fn unsqueeze<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    if axis > x.rank() {
        return Err(Error::Axis { op: "unsqueeze", axis, rank: x.rank() });
    }
    let (mut shape, mut strides): (Shape, Shape) = (x.sizes().into(), x.raw.layout.strides().into());
    // The stride that a contiguous tensor would have there, so that it stays contiguous.
    let stride = if axis < x.rank() { shape[axis] * strides[axis] } else { 1 };
    shape.insert(axis, 1);
    strides.insert(axis, stride);
    let layout = Layout::strided(&shape, &strides)?;
    let marks = (0..x.rank())
        .fold(PaddedDims::NONE, |m, from| m.with(from + usize::from(from >= axis), x.raw.marks.get(from)));
    Ok(x.alias(layout, 0, marks))
}

/// Returns a view without the dimension `axis`, whose size is 1.
///
/// Corresponds to `torch.squeeze`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 1, 3], &[0u32; 6])?;
/// assert_eq!(ops::squeeze(&x, 1)?.shape(), [2, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] if the size is not 1; [`Error::PaddedMix`] if it is padded (it
/// is 1 in this bucket only; `narrow(x, axis, 0, 1)` says that the first is meant).
pub fn squeeze<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    check_axis("squeeze", axis, x.rank())?;
    refuse("squeeze", x.scope(), x.raw.marks, [axis])?;
    if x.size(axis) != 1 {
        let reason = format!("axis {axis} has {} elements; only a dimension of size 1 can go", x.size(axis));
        return Err(x.scope().shape_error("squeeze", &[x.into()], reason));
    }
    let (mut shape, mut strides): (Shape, Shape) = (x.sizes().into(), x.raw.layout.strides().into());
    shape.remove(axis);
    strides.remove(axis);
    Ok(x.alias(Layout::strided(&shape, &strides)?, 0, marks_without(x.raw.marks, axis)))
}

/// Repeats `x` to `shape`, as a view: sizes, aligned at the last dimension, are equal or 1 in `x`.
///
/// Corresponds to `torch.broadcast_to` and `torch.Tensor.expand`.
///
/// The result is padded where `shape` is: a padded dimension of `x` must be in it as one, and a dimension of
/// size 1 can be repeated along a padded one.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 1], &[1u32, 2])?;
/// let y = ops::broadcast_to(&x, &[2, 3])?;
/// assert_eq!(step.read(&y)?, [1, 1, 1, 2, 2, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::Rank`]; [`Error::PaddedMix`] if `x` is padded where `shape` is not, or
/// the other way round.
pub fn broadcast_to<'s, T: Element>(x: &Tensor<'s, T>, shape: impl IntoShape<'s>) -> Result<Tensor<'s, T>> {
    const NAME: &str = "broadcast_to";
    let given = x.scope().resolve(NAME, shape.into_sizes())?;
    broadcast_as(NAME, x, &given.sizes, given.marks)
}

pub(crate) fn broadcast_as<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    shape: &[usize],
    marks: PaddedDims,
) -> Result<Tensor<'s, T>> {
    Layout::contiguous(shape)?;
    let lead = shape.len().saturating_sub(x.rank());
    for axis in 0..x.rank() {
        let mark = x.raw.marks.get(axis);
        if (mark.is_some() || x.size(axis) != 1) && axis + lead < shape.len() {
            meet(name, x.scope(), axis + lead, mark, marks.get(axis + lead))?;
        }
    }
    match x.raw.layout.broadcast_to(shape) {
        Some(layout) => Ok(x.alias(layout, 0, marks)),
        None => Err(x.scope().shape_error(name, &[x.into(), Shown(shape, marks)], super::check::NOT_SPREAD)),
    }
}

/// Returns `n` parts of equal size along `axis`, as views.
///
/// Corresponds to `torch.tensor_split`, of equal parts.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[1u32, 2, 3, 4])?;
/// let parts = ops::split(&x, 0, 2)?;
/// assert_eq!(step.read(&parts[1])?, [3, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] if the axis does not divide into `n` parts, or if `n` is above 65,536 and the
/// tensor is empty or the axis repeated by broadcasting; [`Error::PaddedMix`] if it is padded and `n` is not 1.
pub fn split<'s, T: Element>(x: &Tensor<'s, T>, axis: usize, n: usize) -> Result<Vec<Tensor<'s, T>>> {
    check_axis("split", axis, x.rank())?;
    if n == 1 {
        return Ok(vec![x.clone()]);
    }
    refuse("split", x.scope(), x.raw.marks, [axis])?;
    let size = x.size(axis);
    if n == 0 || !size.is_multiple_of(n) {
        let reason = format!("axis {axis} has {size} elements, which do not divide into {n} equal parts");
        return Err(x.scope().shape_error("split", &[x.into()], reason));
    }
    let has_memory = x.raw.layout.count() > 0 && x.raw.layout.strides()[axis] > 0;
    if n > MOST_PARTS && !has_memory {
        let reason = format!(
            "{n} parts are more than the {MOST_PARTS} that are made of a tensor that is empty or of an axis that is repeated; take \
             those that are needed with `ops::narrow`"
        );
        return Err(x.scope().shape_error("split", &[x.into()], reason));
    }
    parts("split", x, axis, std::iter::repeat_n(MarkedSize::fixed(size / n), n))
}

/// Parts of an axis of which not each place has memory of its own: such an axis may have any size, or any number of parts divides
/// it, and each part is a tensor on the host.
const MOST_PARTS: usize = 1 << 16;

/// Parts of the given sizes along `axis`, in order, as views.
///
/// Corresponds to `torch.split` with a list of sizes.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[1u32, 2, 3, 4])?;
/// let parts = ops::split_at(&x, 0, &[1, 3])?;
/// assert_eq!(step.read(&parts[1])?, [2, 3, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] if the sizes do not sum up to the axis; [`Error::PaddedMix`] if
/// it is padded and not taken as a whole, by its size.
pub fn split_at<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    sizes: impl IntoShape<'s>,
) -> Result<Vec<Tensor<'s, T>>> {
    const NAME: &str = "split_at";
    check_axis(NAME, axis, x.rank())?;
    let mut given: SmallVec<[MarkedSize; MAX_RANK]> = SmallVec::new();
    for dim in sizes.into_sizes() {
        given.push(x.scope().resolve_dim(NAME, dim)?);
    }
    let padding = x.raw.marks.get(axis);
    if padding.is_some() && !matches!(given[..], [all] if all.symbol == padding) {
        refuse(NAME, x.scope(), x.raw.marks, [axis])?;
    }
    let total = given.iter().try_fold(0usize, |sum, part| sum.checked_add(part.size));
    if total != Some(x.size(axis)) {
        let (sizes, have): (Shape, usize) = (given.iter().map(|part| part.size).collect(), x.size(axis));
        let reason = format!("the parts {sizes:?} must sum up to axis {axis}, which has {have} elements");
        return Err(x.scope().shape_error(NAME, &[x.into()], reason));
    }
    for part in &given {
        // For an axis of fixed size, a part as long as a bucket does not determine where the next one starts.
        meet(NAME, x.scope(), axis, part.symbol, padding)?;
    }
    parts(NAME, x, axis, given.into_iter())
}

fn parts<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    sizes: impl Iterator<Item = MarkedSize>,
) -> Result<Vec<Tensor<'s, T>>> {
    let mut start = 0;
    sizes
        .map(|len| {
            let part = narrow_as(name, x, axis, start, len);
            start += len.size;
            part
        })
        .collect()
}
