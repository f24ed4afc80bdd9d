//! Reductions over one axis, and slices along one, normalised.

use smallvec::SmallVec;

use self::operation::{MaskedMean, MaskedSum, Reduce, Reduction};
use super::{
    by_type::Further,
    check::{NOT_SPREAD, broadcast, check_axis, marks_without, refuse, without},
    launch::{compute, own},
    masked::{MEAN, Rows, SUM, reduced},
};
use crate::{
    AsOperand, Error, Number, Result, Tensor,
    backend::{Op, View},
    kernel::call::Call,
    tensor::Shown,
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod further;
mod normalize;
mod operation;
#[cfg(feature = "cuda")]
mod rows;

pub use normalize::{l2_normalize, log_softmax, softmax};
#[cfg(feature = "cuda")]
pub(super) use rows::kernels;

fn reduce<'s, T: Number>(
    name: &'static str,
    op: Op,
    further: Further,
    x: &Tensor<'s, T>,
    axis: usize,
    of_nothing: bool,
) -> Result<Tensor<'s, T>> {
    check_axis(name, axis, x.rank())?;
    refuse(name, x.scope(), x.raw.marks, [axis]).map_err(Error::or_masked)?;
    if x.size(axis) == 0 && !of_nothing {
        let reason = format!("axis {axis} is empty, so it has no {name}");
        return Err(x.scope().shape_error(name, &[x.into()], reason));
    }
    if let Some(definition) = further.of::<T>() {
        return Call::new(definition, x)?.launch_along(axis);
    }
    let marks = marks_without(x.raw.marks, axis);
    compute(x.scope(), op, &[x.view(name)?], &without(x.sizes(), axis), marks)
}

/// Sums over `axis`, which is removed; 0 of an empty axis.
///
/// Corresponds to `torch.sum` with `dim`.
///
/// Floats accumulate in f32, an `f64` in f64; integers wrap. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::sum(&x, 1)?)?, [6.0, 15.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::PaddedMix`](crate::Error::PaddedMix) if `axis` is
/// padded.
pub fn sum<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("sum", Reduction { kind: Reduce::Sum, axis }.into(), further::SUM, x, axis, true)
}

/// Returns the arithmetic mean over `axis`, which is removed. Integers truncate towards zero; the sum of an `i64` wraps.
///
/// Corresponds to `torch.mean` with `dim`.
///
/// Padding of the other dimensions propagates; over a padded axis see [`masked_mean`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::mean(&x, 0)?)?, [2.5, 3.5, 4.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `axis` is empty;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if it is padded.
pub fn mean<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("mean", Reduction { kind: Reduce::Mean, axis }.into(), further::MEAN, x, axis, false)
}

/// Returns the maximum over `axis`, which is removed; NaN if any element is NaN.
///
/// Corresponds to `torch.amax`.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 9.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::max(&x, 1)?)?, [9.0, 6.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`mean`].
pub fn max<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("max", Reduction { kind: Reduce::Max, axis }.into(), further::MAX, x, axis, false)
}

/// Returns the mean over `axis` of the elements whose `mask` is true; zero if there are none. `axis` is removed. Integers truncate
/// towards zero.
///
/// Corresponds to `torch.masked.mean`, which returns NaN of nothing.
///
/// `mask` broadcasts to `x`: for `x` of `[B, T, D]` and a mask of `[B, T]`, pass `unsqueeze(mask, 2)`. `axis`
/// may be padded: elements in the padding do not count, whatever `mask` contains there. Padding of the other
/// dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 9.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, true, false])?;
/// let y = ops::masked_mean(&x, &ops::unsqueeze(&mask, 1)?, 0)?;
/// assert_eq!(step.read(&y)?, [2.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `mask` does not
/// broadcast to `x`; [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different
/// symbols.
pub fn masked_mean<'s, T: Number>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    masked(MaskedMean { axis }.into(), &MEAN, x, mask, axis)
}

/// Sums over `axis` of the elements whose `mask` is true. `axis` is removed. Integers wrap.
///
/// Corresponds to `torch.masked.sum`.
///
/// As [`masked_mean`]: `axis` may be padded. With a mask of all rows it is the sum of the real ones:
///
/// ```
/// use graphable::prelude::*;
///
/// /// The variance of each column of `x`, `[B, D]`.
/// fn variance<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
///     let all = ops::full(x.scope(), (x.dim(0), 1), true)?;
///     let rows = ops::cast::<_, f32>(&ops::size(x, 0)?)?;
///     let mean = ops::div(&ops::masked_sum(x, &all, 0)?, &rows)?;
///     let off = ops::sub(x, &mean)?;
///     ops::div(&ops::masked_sum(&ops::mul(&off, &off)?, &all, 0)?, &rows)
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 6.0])?;
/// assert_eq!(step.read(&variance(&x)?)?, [1.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// See [`masked_mean`].
pub fn masked_sum<'s, T: Number>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    masked(MaskedSum { axis }.into(), &SUM, x, mask, axis)
}

fn masked<'s, T: Number>(
    op: Op,
    rows: &Rows,
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    if let Some(definition) = rows.of::<T>() {
        return reduced(definition, x, mask, axis, None);
    }
    let (name, scope) = (op.name(), x.scope());
    let mask = mask.operand(name, scope)?;
    check_axis(name, axis, x.rank())?;
    let (_, marks) = broadcast(name, scope, &[Shown::from(&own(name, x)?), (&mask).into()])?;
    let Some(layout) = mask.view.layout.broadcast_to(x.sizes()) else {
        return Err(scope.shape_error(name, &[(&mask).into(), x.into()], NOT_SPREAD));
    };
    let spread_mask = View { layout, ..mask.view };
    let mut inputs: SmallVec<[View; 3]> = SmallVec::from_slice(&[x.raw.view(), spread_mask]);
    // A mask that is true in the padding is not a mistake: any comparison makes one.
    inputs.extend(marks.get(axis).and_then(|symbol| scope.real_count(symbol)));
    compute(scope, op, &inputs, &without(x.sizes(), axis), marks_without(marks, axis))
}
