//! Pooling: the largest element or the mean of windows, or of parts.

use self::{config::Window, kernels as k};
use super::{by_type::of_reals, check::refuse, composed::composed};
use crate::{
    Dim, Error, Real, Result, Tensor,
    kernel::{call::Call, definition::Definition},
};

mod config;
mod kernels;

pub use config::{AvgPoolConfig, MaxPoolConfig};

/// The kernels of pooling, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    k::all()
}

/// The most places that kernels of indices count along a dimension.
const LARGEST: usize = i32::MAX as usize;

/// Returns the largest element of each window: `x` is `[N, C, L]`, the result `[N, C, windows]`.
///
/// As `torch.nn.functional.max_pool1d`, without indices; a NaN in a window is its result. Padding of `N` and `C` propagates,
/// and that of `L` if there are as many windows as elements, which is so with a stride of 1 and
/// `2 padding = dilation (kernel - 1)`: no window sees what the padding of a bucket holds.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 5], &[1.0f32, 5.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(step.read(&ops::max_pool1d(&x, ops::MaxPoolConfig::new(2))?)?, [5.0, 3.0]);
/// let config = ops::MaxPoolConfig { ceil_mode: true, ..ops::MaxPoolConfig::new(2) };
/// assert_eq!(step.read(&ops::max_pool1d(&x, config)?)?, [5.0, 3.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] for another rank, or if a window is larger than the input with its padding (in `ceil_mode` by a
/// stride or more); [`Error::Argument`] if a size, a stride or a dilation is 0, or the padding is more than half a window;
/// [`Error::PaddedMix`] if a dimension is padded whose size changes.
pub fn max_pool1d<'s, T: Real>(x: &Tensor<'s, T>, config: MaxPoolConfig<1>) -> Result<Tensor<'s, T>> {
    max_pool("max_pool1d", x, &config)
}

/// Returns the largest element of each window: `x` is `[N, C, H, W]`, the result `[N, C, H', W']`.
///
/// As `torch.nn.functional.max_pool2d`; in all else as [`max_pool1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
/// assert_eq!(step.read(&ops::max_pool2d(&x, ops::MaxPoolConfig::new(2))?)?, [6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`max_pool1d`].
pub fn max_pool2d<'s, T: Real>(x: &Tensor<'s, T>, config: MaxPoolConfig<2>) -> Result<Tensor<'s, T>> {
    max_pool("max_pool2d", x, &config)
}

/// Returns the mean of each window: `x` is `[N, C, L]`, the result `[N, C, windows]`.
///
/// As `torch.nn.functional.avg_pool1d`. Padding as for [`max_pool1d`]; what the padding of a bucket holds counts as the zeros
/// after the input.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 4], &[1.0f32, 5.0, 2.0, 4.0])?;
/// assert_eq!(step.read(&ops::avg_pool1d(&x, ops::AvgPoolConfig::new(2))?)?, [3.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`max_pool1d`].
pub fn avg_pool1d<'s, T: Real>(x: &Tensor<'s, T>, config: AvgPoolConfig<1>) -> Result<Tensor<'s, T>> {
    avg_pool("avg_pool1d", x, &config)
}

/// Returns the mean of each window: `x` is `[N, C, H, W]`, the result `[N, C, H', W']`.
///
/// As `torch.nn.functional.avg_pool2d`; in all else as [`avg_pool1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let config = ops::AvgPoolConfig { count_include_pad: false, ..ops::AvgPoolConfig::new(2).padding(1) };
/// assert_eq!(step.read(&ops::avg_pool2d(&x, config)?)?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`max_pool1d`].
pub fn avg_pool2d<'s, T: Real>(x: &Tensor<'s, T>, config: AvgPoolConfig<2>) -> Result<Tensor<'s, T>> {
    avg_pool("avg_pool2d", x, &config)
}

/// Returns the means of `size` parts of about equal length: `x` is `[N, C, L]`, the result `[N, C, size]`.
///
/// As `torch.nn.functional.adaptive_avg_pool1d`. Padding of `N` and `C` propagates. `L` may be padded: its real elements are
/// divided, and the result is not padded there.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 3], &[1.0f32, 3.0, 8.0])?;
/// assert_eq!(step.read(&ops::adaptive_avg_pool1d(&x, [2])?)?, [2.0, 5.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] for another rank, or if a dimension has no element; [`Error::Argument`] if the number of parts times
/// one more than the size, padding of a bucket included, is above 2^31 - 1.
pub fn adaptive_avg_pool1d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 1]) -> Result<Tensor<'s, T>> {
    adaptive(
        "adaptive_avg_pool1d",
        of_reals!(k::floats::adaptive_avg_1d, k::doubles::adaptive_avg_1d),
        x,
        size,
    )
}

/// Returns the means of `size` parts of about equal size: `x` is `[N, C, H, W]`, the result `[N, C, ..size]`.
///
/// As `torch.nn.functional.adaptive_avg_pool2d`; in all else as [`adaptive_avg_pool1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 6.0])?;
/// assert_eq!(step.read(&ops::adaptive_avg_pool2d(&x, [1, 1])?)?, [3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`adaptive_avg_pool1d`].
pub fn adaptive_avg_pool2d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 2]) -> Result<Tensor<'s, T>> {
    adaptive(
        "adaptive_avg_pool2d",
        of_reals!(k::floats::adaptive_avg_2d, k::doubles::adaptive_avg_2d),
        x,
        size,
    )
}

/// Returns the largest elements of `size` parts of about equal length: `x` is `[N, C, L]`, the result `[N, C, size]`.
///
/// As `torch.nn.functional.adaptive_max_pool1d`, without indices; in all else as [`adaptive_avg_pool1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 3], &[1.0f32, 3.0, 8.0])?;
/// assert_eq!(step.read(&ops::adaptive_max_pool1d(&x, [2])?)?, [3.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`adaptive_avg_pool1d`].
pub fn adaptive_max_pool1d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 1]) -> Result<Tensor<'s, T>> {
    adaptive(
        "adaptive_max_pool1d",
        of_reals!(k::floats::adaptive_max_1d, k::doubles::adaptive_max_1d),
        x,
        size,
    )
}

/// Returns the largest elements of `size` parts of about equal size: `x` is `[N, C, H, W]`, the result `[N, C, ..size]`.
///
/// As `torch.nn.functional.adaptive_max_pool2d`, without indices; in all else as [`adaptive_avg_pool1d`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 6.0])?;
/// assert_eq!(step.read(&ops::adaptive_max_pool2d(&x, [2, 1])?)?, [2.0, 6.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`adaptive_avg_pool1d`].
pub fn adaptive_max_pool2d<'s, T: Real>(x: &Tensor<'s, T>, size: [usize; 2]) -> Result<Tensor<'s, T>> {
    adaptive(
        "adaptive_max_pool2d",
        of_reals!(k::floats::adaptive_max_2d, k::doubles::adaptive_max_2d),
        x,
        size,
    )
}

fn max_pool<'s, T: Real, const N: usize>(
    op: &'static str,
    x: &Tensor<'s, T>,
    config: &MaxPoolConfig<N>,
) -> Result<Tensor<'s, T>> {
    let windows = config.windows(op)?;
    let shape = pooled(op, x, &windows)?;
    let kernel = if N == 1 {
        of_reals!(k::floats::max_pool_1d, k::doubles::max_pool_1d)
    } else {
        of_reals!(k::floats::max_pool_2d, k::doubles::max_pool_2d)
    };
    let mut call = Call::new(kernel, x)?;
    for (axis, window) in (2..).zip(windows) {
        let Window { kernel, stride, padding, dilation, .. } = window.within(x.size(axis));
        [kernel, stride, padding, dilation].into_iter().for_each(|value| call.key(number(value)));
    }
    composed(op, || call.launch_indexed(shape))
}

fn avg_pool<'s, T: Real, const N: usize>(
    op: &'static str,
    x: &Tensor<'s, T>,
    config: &AvgPoolConfig<N>,
) -> Result<Tensor<'s, T>> {
    let windows = config.windows(op)?;
    let shape = pooled(op, x, &windows)?;
    let kernel = if N == 1 {
        of_reals!(k::floats::avg_pool_1d, k::doubles::avg_pool_1d)
    } else {
        of_reals!(k::floats::avg_pool_2d, k::doubles::avg_pool_2d)
    };
    let mut call = Call::new(kernel, x)?;
    for (axis, window) in (2..).zip(windows) {
        let Window { kernel, stride, padding, .. } = window.within(x.size(axis));
        [kernel, stride, padding].into_iter().for_each(|value| call.key(number(value)));
    }
    call.key(config.count_include_pad);
    composed(op, || call.launch_indexed(shape))
}

/// A value that the checks have found to be an `i32`, or a stride that nothing is multiplied by.
fn number(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The shape of the result of windows.
fn pooled<'s, T: Real, const N: usize>(
    op: &'static str,
    x: &Tensor<'s, T>,
    windows: &[Window; N],
) -> Result<Vec<Dim<'s>>> {
    check_rank(op, x, N)?;
    let mut shape: Vec<Dim<'s>> = x.shape().to_vec();
    for (axis, window) in (2..).zip(windows) {
        let size = x.size(axis);
        if size.saturating_add(window.padding.saturating_mul(2)) > LARGEST {
            let reason = format!("dimension {axis} has more places with its padding than {LARGEST}");
            return Err(x.scope().shape_error(op, &[x.into()], reason));
        }
        // Even without an element, and of a dimension that a bucket pads.
        if window.keeps_size() {
            continue;
        }
        if size == 0 {
            let reason = format!("dimension {axis} has no element, so its windows have no value");
            return Err(x.scope().shape_error(op, &[x.into()], reason));
        }
        refuse(op, x.scope(), x.raw.marks, [axis])?;
        shape[axis] = match window.count(size) {
            Some(count) => count.into(),
            None => {
                let reason =
                    format!("a window is larger than dimension {axis}, which has {size}, with its padding");
                return Err(x.scope().shape_error(op, &[x.into()], reason));
            }
        };
    }
    Ok(shape)
}

fn check_rank<T: Real>(op: &'static str, x: &Tensor<'_, T>, dimensions: usize) -> Result<()> {
    // So that errors of the tensor name this operation.
    x.view(op)?;
    let rank = dimensions + 2;
    if x.rank() == rank {
        return Ok(());
    }
    let reason =
        format!("the input must have {rank} dimensions: batch, channels, and {dimensions} to be pooled");
    Err(x.scope().shape_error(op, &[x.into()], reason))
}

fn adaptive<'s, T: Real, const N: usize>(
    op: &'static str,
    kernel: &'static Definition,
    x: &Tensor<'s, T>,
    size: [usize; N],
) -> Result<Tensor<'s, T>> {
    check_rank(op, x, N)?;
    let mut shape: Vec<Dim<'s>> = x.shape().to_vec();
    let mut call = Call::new(kernel, x)?;
    for (axis, parts) in (2..).zip(size) {
        let have = x.size(axis);
        if have == 0 && parts > 0 {
            let reason = format!("dimension {axis} has no element, so its parts have no value");
            return Err(x.scope().shape_error(op, &[x.into()], reason));
        }
        if (have + 1).saturating_mul(parts) > LARGEST {
            return Err(Error::Argument {
                op,
                reason: format!(
                    "dimension {axis} is to have {parts} parts of {have} elements; parts times one more than there are elements \
                     must be at most {LARGEST}"
                ),
            });
        }
        shape[axis] = parts.into();
        call.key(number(parts));
    }
    composed(op, || call.launch_indexed(shape))
}
