//! Additions at indices. Entries are sorted by their targets, so each element of the result adds its own, in their order.

use self::kernels::{f32s, f64s, i8s, i32s, i64s, indexed, scattered, u8s, u32s};
use crate::{
    Dim, Number, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Definition, Kernel as _},
    },
    ops::{
        broadcast_to,
        by_type::{ByType, each_type},
        check::{check_axis, meet, refuse},
        concat, full, narrow,
        order::Groups,
        reshape,
    },
};

mod kernels;

/// The index of an entry that is added to nothing.
const SKIP: u32 = u32::MAX;

/// Returns `x` with each element of `src` added at its index along `axis`: of two dimensions and axis 0,
/// `y[index[i, j], j] += src[i, j]`.
///
/// As `torch.scatter_add`: `index` has as many dimensions as `x` and `src`, and is nowhere larger than `src`, nor, but for
/// `axis`, than `x`; where it is smaller, the rest of `src` is not added. An element adds to that of `x` its entries in their
/// order along `axis`, so the result is the same in every run and on every device; floats are added in f32 (an `f64` in f64) and
/// rounded once, integers wrap. An index of `u32::MAX` is skipped; any other index without an element is a fault, which the next read reports,
/// and is skipped as well. Entries are sorted by their indices, as by [`sort`](super::sort), and one thread adds those of an
/// element.
///
/// If `axis` of `index` and `src` is padded, only the real entries are added. `axis` of `x` may be padded, too. Padding of the
/// other dimensions propagates if the dimension is the only one on its side of `axis`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[10.0f32, 20.0, 30.0])?;
/// let index = step.tensor(&[4], &[2u32, 0, 2, 2])?;
/// let src = step.tensor(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(step.read(&ops::scatter_add(&x, 0, &index, &src)?)?, [12.0, 20.0, 38.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if the shapes do not fit, or there are more
/// than 2^30 entries along `axis`; [`Error::PaddedMix`](crate::Error::PaddedMix) if `index` and `src`, or they and the other
/// dimensions of `x`, are padded differently, or one of several dimensions on a side of `axis` is. Later, at a read:
/// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange).
pub fn scatter_add<'s, T: Number>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &Tensor<'s, u32>,
    src: &Tensor<'s, T>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "scatter_add";
    check_axis(NAME, axis, x.rank())?;
    let fits = |at: usize| {
        let of_target = if at == axis { usize::MAX } else { x.size(at) };
        index.size(at) <= src.size(at).min(of_target)
    };
    if [index.rank(), src.rank()] != [x.rank(); 2] {
        let reason = "the index and the source must have the dimensions of the first tensor";
        return Err(x.scope().shape_error(NAME, &[x.into(), index.into(), src.into()], reason));
    }
    for at in 0..x.rank() {
        let mark = meet(NAME, x.scope(), at, index.raw.marks.get(at), src.raw.marks.get(at))?;
        if at != axis {
            meet(NAME, x.scope(), at, x.raw.marks.get(at), mark)?;
        }
    }
    if !(0..x.rank()).all(fits) {
        let reason = format!(
            "the index must not be larger than the source, nor, but for axis {axis}, than the first tensor"
        );
        return Err(x.scope().shape_error(NAME, &[x.into(), index.into(), src.into()], reason));
    }
    let (index, src) = completed(x, axis, index, src)?;
    let index = around(NAME, &index, axis)?;
    let groups = grouped(scattered::scatter_add::DEFINITION, x, axis, &index)?;
    added(NAME, x, axis, &around(NAME, &src, axis)?, &groups)
}

/// Returns `x` with each slice of `src` along `axis` added at its index: of two dimensions and axis 0,
/// `y[index[i], j] += src[i, j]`.
///
/// As `torch.index_add`: `index` is `[N]`, and `src` has the shape of `x` with `N` in place of `axis`. Order, faults and padding
/// are those of [`scatter_add`], in which every element of `src` has an index of its own.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = ops::zeros::<f32>(step.scope(), &[3, 2])?;
/// let index = step.tensor(&[3], &[2u32, 0, 2])?;
/// let src = step.tensor(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::index_add(&x, 0, &index, &src)?)?, [3.0, 4.0, 0.0, 0.0, 6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`scatter_add`].
pub fn index_add<'s, T: Number>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &Tensor<'s, u32>,
    src: &Tensor<'s, T>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "index_add";
    check_axis(NAME, axis, x.rank())?;
    let wrong =
        |reason: String| Err(x.scope().shape_error(NAME, &[x.into(), index.into(), src.into()], reason));
    if index.rank() != 1 || src.rank() != x.rank() {
        return wrong(
            "the index must be `[N]`, and the source have the dimensions of the first tensor".into(),
        );
    }
    for at in 0..x.rank() {
        let other = if at == axis { index.raw.marks.get(0) } else { x.raw.marks.get(at) };
        meet(NAME, x.scope(), at, other, src.raw.marks.get(at))?;
    }
    let expected = |at: usize| if at == axis { index.size(0) } else { x.size(at) };
    if (0..x.rank()).any(|at| src.size(at) != expected(at)) {
        return wrong(format!(
            "the source must have the shape of the first tensor, with the size of the index in place of axis {axis}"
        ));
    }
    let src = around(NAME, src, axis)?;
    let index = reshape(index, [1.into(), index.dim(0), 1.into()])?;
    let Groups { order, begins } = grouped(indexed::index_add::DEFINITION, x, axis, &index)?;
    // Every slice has the order of the index.
    let along = |tensor: &Tensor<'s, u32>| broadcast_to(tensor, [src.dim(0), tensor.dim(1), src.dim(2)]);
    let groups = Groups { order: along(&order)?, begins: along(&begins)? };
    added(NAME, x, axis, &src, &groups)
}

/// The part of `src` that has an index, and both with entries that are skipped where `x` is larger.
fn completed<'s, T: Number>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &Tensor<'s, u32>,
    src: &Tensor<'s, T>,
) -> Result<(Tensor<'s, u32>, Tensor<'s, T>)> {
    let (mut index, mut src) = (index.clone(), src.clone());
    for at in 0..x.rank() {
        src = narrow(&src, at, 0, index.dim(at))?;
    }
    for at in (0..x.rank()).filter(|at| *at != axis) {
        let missing = x.size(at) - index.size(at);
        if missing > 0 {
            let mut rest = index.shape().to_vec();
            rest[at] = missing.into();
            index = concat(&[&index, &full(x.scope(), &rest[..], SKIP)?], at)?;
            src = concat(&[&src, &full(x.scope(), &rest[..], T::from_f64(0.0))?], at)?;
        }
    }
    Ok((index, src))
}

/// A tensor as `[I, N, J]`: `N` is its size along `axis`, and `I` and `J` are the dimensions before and after it.
fn around<'s, T: Number>(name: &'static str, x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    let side = |axes: std::ops::Range<usize>| -> Result<Dim<'s>> {
        if axes.len() == 1 {
            return Ok(x.dim(axes.start));
        }
        refuse(name, x.scope(), x.raw.marks, axes.clone())?;
        Ok(x.sizes()[axes].iter().product::<usize>().into())
    };
    reshape(x, [side(0..axis)?, x.dim(axis), side(axis + 1..x.rank())?])
}

/// Groups entries `[I, N, J]` by their indices along `axis` of `x`, which `kernel` checks.
fn grouped<'s, T: Number>(
    kernel: &'static Definition,
    x: &Tensor<'s, T>,
    axis: usize,
    index: &Tensor<'s, u32>,
) -> Result<Groups<'s>> {
    let all = broadcast_to(&full(x.scope(), [1], 0u32)?, [x.dim(axis)])?;
    let mut call = Call::new(kernel, index)?;
    call.argument::<u32>(&all)?;
    // Entries in the padding have no target, so nothing is padding along this axis from here on.
    let targets: Tensor<'s, u32> = call.launch_indexed([index.dim(0), index.size(1).into(), index.dim(2)])?;
    Groups::of(kernel.name, &targets, 1, x.size(axis))
}

/// Adds the entries of each group to its element.
fn added<'s, T: Number>(
    name: &'static str,
    x: &Tensor<'s, T>,
    axis: usize,
    src: &Tensor<'s, T>,
    groups: &Groups<'s>,
) -> Result<Tensor<'s, T>> {
    const OF: ByType = each_type!(f32s::scatter_add);
    let whole = around(name, x, axis)?;
    let mut call = Call::new(OF.of::<T>(), &whole)?;
    call.argument::<T>(src)?;
    call.argument::<u32>(&groups.order)?;
    call.argument::<u32>(&groups.begins)?;
    let sums: Tensor<'s, T> = call.launch_indexed(whole.shape())?;
    reshape(&sums, x.shape())
}

/// The kernels of this folder, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    kernels::all().into_iter()
}
