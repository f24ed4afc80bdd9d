//! Slices along one axis, normalised.

use super::{
    super::{
        check::{Shape, check_axis, check_eps, refuse},
        launch::compute,
        permute,
    },
    operation::{L2Normalize, Softmax},
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    Error, Real, Result, Tensor,
    backend::Op,
    kernel::{call::Call, definition::Kernel as _},
};

/// Kernels of `f64`; those of the other types have loops of their own.
mod f64s {
    use crate::kernel;

    /// Of a row of only `-inf`, zeros.
    #[kernel(rows)]
    pub(super) fn softmax(x: Row<f64>) -> Row<f64> {
        let max = x.max();
        let top = max.max(f64::MIN);
        let powers = x.map(|v| (v - top).exp());
        let total = powers.sum() + if max == f64::NEG_INFINITY { 1.0 } else { 0.0 };
        powers.map(|v| v / total)
    }

    /// Of a row of only `-inf`, `-inf`.
    #[kernel(rows)]
    pub(super) fn log_softmax(x: Row<f64>) -> Row<f64> {
        let max = x.max();
        let top = max.max(f64::MIN);
        let total = x.map(|v| (v - top).exp()).sum() + if max == f64::NEG_INFINITY { 1.0 } else { 0.0 };
        let log = total.ln();
        x.map(|v| v - top - log)
    }

    #[kernel(rows)]
    pub(super) fn l2_normalize(x: Row<f64>, eps: f64) -> Row<f64> {
        let norm = x.map(|v| v * v).sum().sqrt();
        // Not `norm.max(eps)`: that would hide a NaN.
        let divisor = if norm < eps { eps } else { norm };
        x.map(|v| v / divisor)
    }
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> [&'static Definition; 3] {
    [f64s::softmax::DEFINITION, f64s::log_softmax::DEFINITION, f64s::l2_normalize::DEFINITION]
}

/// An operation over one unpadded axis that keeps the shape.
fn along<'s, T: Real>(
    name: &'static str,
    op: Op,
    of_f64: impl FnOnce() -> Result<Call<'s>>,
    x: &Tensor<'s, T>,
    axis: usize,
) -> Result<Tensor<'s, T>> {
    check_axis(name, axis, x.rank())?;
    refuse(name, x.scope(), x.raw.marks, [axis]).map_err(Error::or_masked)?;
    if !T::DTYPE.is_computed_in_f32() {
        // The rows of the result are along its last dimension.
        let rows: Tensor<'s, T> = of_f64()?.launch_along(axis)?;
        let last = x.rank() - 1;
        let axes: Shape = (0..axis).chain([last]).chain(axis..last).collect();
        return permute(&rows, &axes);
    }
    compute(x.scope(), op, &[x.view(name)?], x.sizes(), x.raw.marks)
}

/// Computes `x / max(|x|, eps)` with the Euclidean norm over `axis`.
///
/// Corresponds to `torch.nn.functional.normalize` with `p=2`.
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
pub fn l2_normalize<'s, T: Real>(
    x: &Tensor<'s, T>,
    axis: usize,
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    let eps = eps.into();
    check_eps::<T>("l2_normalize", eps)?;
    let op = L2Normalize { axis, eps: eps as f32 }.into();
    let of_f64 = || {
        let mut call = Call::new(f64s::l2_normalize::DEFINITION, x)?;
        call.key(eps);
        Ok(call)
    };
    along("l2_normalize", op, of_f64, x, axis)
}

/// Computes `e^x / sum(e^x)` over `axis`, in f32 (of an `f64` in f64) and without overflow. The result for a slice of only `-inf` is zeros.
///
/// Corresponds to `torch.nn.functional.softmax`.
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
pub fn softmax<'s, T: Real>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    let of_f64 = || Call::new(f64s::softmax::DEFINITION, x);
    along("softmax", Softmax { axis, log: false }.into(), of_f64, x, axis)
}

/// Returns the logarithm of [`softmax`], without loss of small values. The result for a slice of only `-inf` is
/// `-inf`.
///
/// Corresponds to `torch.nn.functional.log_softmax`.
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
pub fn log_softmax<'s, T: Real>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    let of_f64 = || Call::new(f64s::log_softmax::DEFINITION, x);
    along("log_softmax", Softmax { axis, log: true }.into(), of_f64, x, axis)
}
