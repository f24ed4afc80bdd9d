//! Tensors made from host values that are fixed when a segment is recorded.

use self::operation::{Arange, Fill};
use super::{check::check_axis, launch::compute};
use crate::{
    Element, Error, IntoDim, IntoShape, Number, Result, Scope, Tensor,
    memory::COPY,
    value::{dim::MarkedSize, layout::PaddedDims},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// Creates a tensor of `shape` filled with `value`.
///
/// Corresponds to `torch.full`.
///
/// `(x.dim(0), 4)` is a shape, too: the tensor is padded where `x` is.
///
/// ```
/// use graphable::prelude::*;
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[0.0f32; 6])?;
/// let ones = ops::full(x.scope(), (x.dim(0), 4), 1.0f32)?;
/// assert_eq!(ones.shape(), [2, 4]);
/// let scalar = ops::full(x.scope(), (), 1.0f32)?;
/// assert_eq!(scalar.rank(), 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Rank`], [`Error::TooLarge`]; [`Error::PaddedSize`] for a size computed from a padded one.
pub fn full<'s, T: Element>(scope: Scope<'s>, shape: impl IntoShape<'s>, value: T) -> Result<Tensor<'s, T>> {
    filled("full", scope, shape, value)
}

fn filled<'s, T: Element>(
    name: &'static str,
    scope: Scope<'s>,
    shape: impl IntoShape<'s>,
    value: T,
) -> Result<Tensor<'s, T>> {
    let given = scope.resolve(name, shape.into_sizes())?;
    compute(scope, Fill::of(value), &[], &given.sizes, given.marks)
}

/// Returns the size of `axis` as a tensor of rank 0 on the device: the real size if a bucket pads it, whose
/// value a recording reads at each replay.
///
/// Corresponds to `torch.Tensor.size`, whose result is on the host.
///
/// ```
/// use graphable::prelude::*;
///
/// /// Each element divided by the number of rows.
/// fn per_row<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
///     let rows = ops::cast::<_, f32>(&ops::size(x, 0)?)?;
///     ops::div(x, &rows)
/// }
///
/// /// The last row, as `[1, D]`.
/// fn last<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
///     let one = ops::full(x.scope(), (), 1u32)?;
///     let last = ops::sub(&ops::size(x, 0)?, &one)?;
///     ops::gather(x, 0, &ops::reshape(&last, [1])?)
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(step.read(&per_row(&x)?)?, [0.5, 1.0, 1.5, 2.0]);
/// assert_eq!(step.read(&last(&x)?)?, [3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::TooLarge`] for a size above `u32`.
pub fn size<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, u32>> {
    const NAME: &str = "size";
    check_axis(NAME, axis, x.rank())?;
    x.view(NAME)?;
    let scope = x.scope();
    let count = x.raw.marks.get(axis).and_then(|symbol| scope.real_count(symbol));
    match count {
        Some(count) => compute(scope, COPY, &[count], &[], PaddedDims::NONE),
        None => {
            let size =
                u32::try_from(x.size(axis)).map_err(|_| Error::TooLarge { shape: x.sizes().to_vec() })?;
            full(scope, (), size)
        }
    }
}

/// Returns a tensor of zeros (`false`) of `shape`.
///
/// Corresponds to `torch.zeros`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = ops::zeros::<f32>(step.scope(), &[3])?;
/// assert_eq!(step.read(&x)?, [0.0; 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`full`].
pub fn zeros<'s, T: Element>(scope: Scope<'s>, shape: impl IntoShape<'s>) -> Result<Tensor<'s, T>> {
    filled("zeros", scope, shape, T::from_f64(0.0))
}

/// Creates a tensor with the shape and padding marks of `x`, filled with `value`.
///
/// Corresponds to `torch.full_like`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[1.0f32, 2.0])?;
/// let y = ops::full_like(&x, 3.0)?;
/// assert_eq!(step.read(&y)?, [3.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn full_like<'s, T: Element>(x: &Tensor<'s, T>, value: T) -> Result<Tensor<'s, T>> {
    compute(x.scope(), Fill::of(value), &[], x.sizes(), x.raw.marks)
}

/// Zeros (`false`) with the shape and padding marks of `x`.
///
/// Corresponds to `torch.zeros_like`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[1.0f32, 2.0])?;
/// let y = ops::zeros_like(&x)?;
/// assert_eq!(step.read(&y)?, [0.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`full_like`].
pub fn zeros_like<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    full_like(x, T::from_f64(0.0))
}

/// Ones (`true`) with the shape and padding marks of `x`.
///
/// Corresponds to `torch.ones_like`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[true, false])?;
/// let y = ops::ones_like(&x)?;
/// assert_eq!(step.read(&y)?, [true, true]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`full_like`].
pub fn ones_like<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    full_like(x, T::from_f64(1.0))
}

/// Returns `0, 1, .., n - 1`, of shape `[n]`. Element types that cannot hold a number round or saturate, as in
/// [`arange_step`].
///
/// Corresponds to `torch.arange(n)`.
///
/// `n` may be the size of a tensor, as in `arange(x.scope(), x.dim(0))`: the result is padded where that is.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = ops::arange::<u32>(step.scope(), 4)?;
/// assert_eq!(step.read(&x)?, [0, 1, 2, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::PaddedSize`] for a size computed from a padded one.
pub fn arange<'s, T: Number>(scope: Scope<'s>, n: impl IntoDim<'s>) -> Result<Tensor<'s, T>> {
    let n = scope.resolve_dim("arange", n.into_dim())?;
    numbered(scope, n, 0.0, 1.0)
}

/// Returns `start + i * step` for `i` in `0..n`, of shape `[n]`, computed in `f64` and then converted: rounded
/// to the nearest of a float type, truncated and saturated to integers, as [`cast`](super::cast) does.
///
/// Corresponds to `torch.arange` with a start and a step; the number of elements is given here, and not the end.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = ops::arange_step::<f32>(step.scope(), 3, 1.0, 0.5)?;
/// assert_eq!(step.read(&x)?, [1.0, 1.5, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `start` or `step` is not finite; [`Error::PaddedSize`] as for [`arange`].
pub fn arange_step<'s, T: Number>(
    scope: Scope<'s>,
    n: impl IntoDim<'s>,
    start: f64,
    step: f64,
) -> Result<Tensor<'s, T>> {
    if !start.is_finite() || !step.is_finite() {
        let reason = format!("start {start}, step {step}; both must be finite");
        return Err(Error::Argument { op: "arange_step", reason });
    }
    let n = scope.resolve_dim("arange_step", n.into_dim())?;
    numbered(scope, n, start, step)
}

fn numbered<'s, T: Number>(scope: Scope<'s>, n: MarkedSize, start: f64, step: f64) -> Result<Tensor<'s, T>> {
    compute(scope, Arange { start, step }, &[], &[n.size], PaddedDims::NONE.with(0, n.symbol))
}
