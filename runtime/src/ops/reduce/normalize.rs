//! Slices along one axis, normalised.

use super::{
    super::{
        check::{check_axis, check_eps, refuse},
        launch::compute,
    },
    operation::{L2Normalize, Softmax},
};
use crate::{Error, Float, Result, Tensor, backend::Op};

/// An operation over one unpadded axis that keeps the shape.
fn along<'s, T: Float>(name: &'static str, op: Op, x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    check_axis(name, axis, x.rank())?;
    refuse(name, x.scope(), x.raw.marks, [axis]).map_err(Error::or_masked)?;
    compute(x.scope(), op, &[x.view(name)?], x.sizes(), x.raw.marks)
}

/// Computes `x / max(|x|, eps)` with the Euclidean norm over `axis`.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 4], &[3.0f32; 4])?; // of length 6
/// assert_eq!(step.read(&ops::l2_normalize(&x, 1, 1e-12)?)?, [0.5; 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Argument`](crate::Error::Argument) for a negative `eps`; [`Error::PaddedMix`](crate::Error::PaddedMix) if `axis` is
/// padded.
pub fn l2_normalize<'s, T: Float>(x: &Tensor<'s, T>, axis: usize, eps: f32) -> Result<Tensor<'s, T>> {
    check_eps("l2_normalize", eps)?;
    along("l2_normalize", L2Normalize { axis, eps }.into(), x, axis)
}

/// Computes `e^x / sum(e^x)` over `axis`, in f32 and without overflow. The result for a slice of only `-inf` is zeros.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 1.0, 0.0, f32::NEG_INFINITY])?;
/// assert_eq!(step.read(&ops::softmax(&x, 1)?)?, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::PaddedMix`](crate::Error::PaddedMix) if `axis` is padded.
pub fn softmax<'s, T: Float>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    along("softmax", Softmax { axis, log: false }.into(), x, axis)
}

/// Returns the logarithm of [`softmax`], without loss of small values. The result for a slice of only `-inf` is
/// `-inf`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[5.0f32, f32::NEG_INFINITY])?;
/// assert_eq!(step.read(&ops::log_softmax(&x, 1)?)?, [0.0, f32::NEG_INFINITY]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`softmax`].
pub fn log_softmax<'s, T: Float>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    along("log_softmax", Softmax { axis, log: true }.into(), x, axis)
}
