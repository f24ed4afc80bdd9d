//! Inputs of other sizes: each element of the result is the nearest one of the input, or lies between its neighbours.

use self::kernels as k;
use super::{by_type::of_reals, composed::composed};
use crate::{
    Dim, Error, Real, Result, Tensor,
    kernel::{call::Call, definition::Definition},
};

mod kernels;

/// The kernels of upsampling, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    k::all()
}

/// Resizes `x`, `[N, C, L]`, to `[N, C, size]`: the element at place `i` is that at `i L / size`, computed in f32 and
/// rounded down.
///
/// As `torch.nn.functional.interpolate` with `mode="nearest"`. Padding of `N` and `C` propagates. `L` may be padded: its real
/// elements are spread, and the result is not padded there.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2], &[1.0f32, 2.0])?;
/// assert_eq!(step.read(&ops::upsample_nearest1d(&x, [4])?)?, [1.0, 1.0, 2.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] for another rank, or if a dimension of the input has no element; [`Error::Argument`] if a size is 2³¹ or
/// more.
pub fn upsample_nearest1d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 1]) -> Result<Tensor<'s, T>> {
    upsample("upsample_nearest1d", of_reals!(k::floats::nearest_1d, k::doubles::nearest_1d), x, size, None)
}

/// Resizes `x`, `[N, C, H, W]`, to `[N, C, ..size]`, as [`upsample_nearest1d`] in both dimensions.
///
/// Corresponds to `torch.nn.functional.interpolate` with `mode="nearest"`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 1, 2], &[1.0f32, 2.0])?;
/// assert_eq!(step.read(&ops::upsample_nearest2d(&x, [2, 3])?)?, [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`upsample_nearest1d`].
pub fn upsample_nearest2d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 2]) -> Result<Tensor<'s, T>> {
    upsample("upsample_nearest2d", of_reals!(k::floats::nearest_2d, k::doubles::nearest_2d), x, size, None)
}

/// Resizes `x`, `[N, C, L]`, to `[N, C, size]`: values on straight lines between the elements.
///
/// As `torch.nn.functional.interpolate` with `mode="linear"`. With `align_corners`, the first and the last element stay what they
/// are; without it, elements are intervals, and outside of the middle of the first and the last one the value does not
/// change. Padding as for [`upsample_nearest1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2], &[0.0f32, 8.0])?;
/// assert_eq!(step.read(&ops::upsample_linear1d(&x, [4], false)?)?, [0.0, 2.0, 6.0, 8.0]);
/// assert_eq!(step.read(&ops::upsample_linear1d(&x, [3], true)?)?, [0.0, 4.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`upsample_nearest1d`].
pub fn upsample_linear1d<'s, T: Real>(
    x: &Tensor<'s, T>,
    size: [usize; 1],
    align_corners: bool,
) -> Result<Tensor<'s, T>> {
    upsample(
        "upsample_linear1d",
        of_reals!(k::floats::linear_1d, k::doubles::linear_1d),
        x,
        size,
        Some(align_corners),
    )
}

/// Resizes `x`, `[N, C, H, W]`, to `[N, C, ..size]`, as [`upsample_linear1d`] in both dimensions.
///
/// As `torch.nn.functional.interpolate` with `mode="bilinear"`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 2], &[0.0f32, 4.0, 8.0, 12.0])?;
/// let y = ops::upsample_bilinear2d(&x, [3, 2], true)?;
/// assert_eq!(step.read(&y)?, [0.0, 4.0, 4.0, 8.0, 8.0, 12.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`upsample_nearest1d`].
pub fn upsample_bilinear2d<'s, T: Real>(
    x: &Tensor<'s, T>,
    size: [usize; 2],
    align_corners: bool,
) -> Result<Tensor<'s, T>> {
    upsample(
        "upsample_bilinear2d",
        of_reals!(k::floats::bilinear_2d, k::doubles::bilinear_2d),
        x,
        size,
        Some(align_corners),
    )
}

fn upsample<'s, T: Real, const N: usize>(
    op: &'static str,
    kernel: &'static Definition,
    x: &Tensor<'s, T>,
    size: [usize; N],
    corners: Option<bool>,
) -> Result<Tensor<'s, T>> {
    // So that errors of the tensor name this operation.
    x.view(op)?;
    let rank = N + 2;
    if x.rank() != rank {
        let reason =
            format!("the input must have {rank} dimensions: batch, channels, and {N} of another size");
        return Err(x.scope().shape_error(op, &[x.into()], reason));
    }
    let mut shape: Vec<Dim<'s>> = x.shape().to_vec();
    let mut call = Call::new(kernel, x)?;
    for (axis, size) in (2..).zip(size) {
        if x.size(axis) == 0 && size > 0 {
            let reason = format!("dimension {axis} has no element that the result could repeat");
            return Err(x.scope().shape_error(op, &[x.into()], reason));
        }
        let out = i32::try_from(size).map_err(|_| Error::Argument {
            op,
            reason: format!("dimension {axis} is to have {size} elements; it can have at most {}", i32::MAX),
        })?;
        shape[axis] = size.into();
        call.key(out);
    }
    corners.into_iter().for_each(|corners| call.key(corners));
    composed(op, || call.launch_indexed(shape))
}
