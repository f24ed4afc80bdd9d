//! Reductions over one axis.

use super::{broadcast, check_axis, compute, marks_without, own, refuse, spread, without};
use crate::{
    AsOperand, Element, Error, Float, Number, Result, Tensor,
    backend::{Op, Reduce},
};

fn reduce<'s, T: Number, U: Element>(
    name: &'static str,
    op: Op,
    x: &Tensor<'s, T>,
    axis: usize,
    of_nothing: bool,
) -> Result<Tensor<'s, U>> {
    check_axis(name, axis, x.rank())?;
    refuse(name, x.scope(), x.raw.marks, [axis])?;
    if x.size(axis) == 0 && !of_nothing {
        let why = format!("axis {axis} is empty, and there is no {name} of nothing");
        return Err(Error::shape(name, &[x.sizes()], why));
    }
    let marks = marks_without(x.raw.marks, axis);
    compute(x.scope(), op, &[x.view(name)?], &without(x.sizes(), axis), marks)
}

/// Sum over `axis`, which is removed; 0 of an empty axis.
///
/// Floats accumulate in f32, integers wrap. Padding of the other dimensions propagates.
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
/// [`Error::Axis`]; [`Error::PaddedMix`] when `axis` is padded.
pub fn sum<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("sum", Op::Reduce { kind: Reduce::Sum, axis }, x, axis, true)
}

/// Arithmetic mean over `axis`, which is removed. Integers truncate towards zero.
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
/// [`Error::Axis`]; [`Error::Shape`] when `axis` is empty; [`Error::PaddedMix`] when it is padded.
pub fn mean<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("mean", Op::Reduce { kind: Reduce::Mean, axis }, x, axis, false)
}

/// Maximum over `axis`, which is removed; NaN if any element is NaN.
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
/// As [`mean`].
pub fn max<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    reduce("max", Op::Reduce { kind: Reduce::Max, axis }, x, axis, false)
}

/// Index of the first maximum along `axis`, which is removed. NaN counts as larger than every
/// number.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 9.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::argmax(&x, 1)?)?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`mean`].
pub fn argmax<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, u32>> {
    reduce("argmax", Op::ArgMax { axis }, x, axis, false)
}

/// Mean over `axis` of the elements whose `mask` is true; zero where none is. `axis` is removed.
///
/// `mask` broadcasts to `x`: for `x` of `[B, T, D]` and a mask of `[B, T]`, pass
/// `unsqueeze(mask, 2)`. `axis` may be padded: what counts is the caller's mask, which must be false
/// in the padding. Padding of the other dimensions propagates.
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
/// [`Error::Axis`]; [`Error::Shape`] when `mask` does not broadcast to `x`; [`Error::PaddedMix`]
/// when one dimension is padded by different symbols.
pub fn masked_mean<'s, T: Float>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "masked_mean";
    let scope = x.scope();
    check_axis(NAME, axis, x.rank())?;
    let mask = mask.operand(NAME, scope)?;
    let spread_mask = spread(NAME, mask.view, x.sizes())?;
    let (_, marks) = broadcast(NAME, scope, &[own(NAME, x)?, mask])?;
    let inputs = [x.raw.view(), spread_mask];
    compute(scope, Op::MaskedMean { axis }, &inputs, &without(x.sizes(), axis), marks_without(marks, axis))
}
