//! Batch norm with the statistics of the batch.

use super::{check, check_types, kernels as k, normalized};
use crate::{
    AsOperand, Error, Real, Result, State, Tensor,
    kernel::call::Call,
    ops::{
        by_type::of_reals,
        cast,
        check::{check_eps, shown},
        contiguous,
        launch::own,
        mul, size, store, transpose,
    },
    tensor::Operand,
    value::layout::{Layout, PaddedDims},
};

const NAME: &str = "batch_norm_training";

/// Applies batch norm as in training: each channel of `x`, `[N, C, ..]`, is normalised by its own mean and
/// variance, multiplied by `weight` and added to `bias`, and moves its running statistics, all `[C]`.
///
/// As `torch.nn.functional.batch_norm` with `training=True`. The result is that of [`batch_norm`](super::batch_norm) with the
/// mean of the channel and its variance, the mean of the squared distances. The running mean becomes
/// `(1 - momentum) * running + momentum * batch`, the running variance likewise by the variance that is estimated from the batch
/// as a sample: the sum of the squared distances divided by one less than their number. Of a single value, which PyTorch
/// refuses, both variances are 0. If `N` is padded, the statistics are those of the real rows, and its padding propagates.
///
/// Statistics are computed in f32, those of an `f64` in f64; beside it, everything is `f64`. Running statistics, weight and bias
/// may have another float type than `x`; beside an `x` of 16 bits, they are best `f32`, as in PyTorch's mixed precision: in 16 bits, a step of less than half a unit in the last place is
/// lost, so running statistics no longer move once they are near those of the batches.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let (mean, var) = (State::zeros(&rt, &[1])?, State::zeros(&rt, &[1])?);
/// let (w, b) = (Param::new(&rt, &[1], &[2.0f32])?, Param::new(&rt, &[1], &[1.0f32])?);
/// let step = rt.step()?;
/// let x = step.tensor(&[4, 1], &[1.0f32, 1.0, 5.0, 5.0])?;
/// let y = ops::batch_norm_training(&x, &mean, &var, &w, &b, 0.5, 0.0)?;
/// assert_eq!(step.read(&y)?, [-1.0, -1.0, 3.0, 3.0]);
/// assert_eq!(step.read(&ops::load(step.scope(), &mean)?)?, [1.5]);
/// assert_eq!(step.read(&ops::load(step.scope(), &var)?)?, [0.5 * 16.0 / 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit together, or a channel has no value; [`Error::Argument`] for a negative
/// `eps`, or a `momentum` that is not from 0 to 1; [`Error::DTypeMismatch`] if one of `T` and `W` alone is `f64`;
/// [`Error::PaddedMix`] if anything but `N` is padded; [`Error::TooLarge`] for
/// channels of more values than a `u32` counts.
pub fn batch_norm_training<'s, T: Real, W: Real>(
    x: &Tensor<'s, T>,
    running_mean: &State<W>,
    running_var: &State<W>,
    weight: &(impl AsOperand<'s, W> + ?Sized),
    bias: &(impl AsOperand<'s, W> + ?Sized),
    momentum: impl Into<f64>,
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    let (momentum, eps) = (momentum.into(), eps.into());
    let scope = x.scope();
    let running = [running_mean.operand(NAME, scope)?, running_var.operand(NAME, scope)?];
    let affine = [weight.operand(NAME, scope)?, bias.operand(NAME, scope)?];
    check_eps::<T>(NAME, eps)?;
    if !(0.0..=1.0).contains(&momentum) {
        return Err(Error::Argument {
            op: NAME,
            reason: format!("momentum is {}; it must be from 0 to 1", shown(momentum)),
        });
    }
    check_types::<T, W>(NAME)?;
    check(NAME, x, &[running, affine].concat(), 1..x.rank())?;
    let (y, moved) = if T::DTYPE.is_computed_in_f32() {
        trained::<T, f32, W>(x, running, affine, [momentum, eps])?
    } else {
        trained::<T, f64, W>(x, running, affine, [momentum, eps])?
    };
    for (running, moved) in [running_mean, running_var].into_iter().zip(&moved) {
        store(running, moved)?;
    }
    Ok(y)
}

/// The result, and the running statistics after it, computed in the type `C`.
fn trained<'s, T: Real, C: Real, W: Real>(
    x: &Tensor<'s, T>,
    running: [Operand; 2],
    affine: [Operand; 2],
    [momentum, eps]: [f64; 2],
) -> Result<(Tensor<'s, T>, [Tensor<'s, W>; 2])> {
    let [mean, var, sample_var] = statistics::<T, C>(x)?;
    let y = normalized(x, [own(NAME, &mean)?, own(NAME, &var)?, affine[0], affine[1]], eps)?;
    let moved = |batch: &Tensor<'s, C>, running: Operand| {
        let mut call = Call::new(of_reals!(k::floats::moved, k::doubles::moved), batch)?;
        call.operand(running);
        call.number::<T>(momentum);
        call.launch()
    };
    Ok((y, [moved(&mean, running[0])?, moved(&sample_var, running[1])?]))
}

/// The mean of each channel, its variance, and the variance estimated from it as a sample, all `[C]`.
fn statistics<'s, T: Real, C: Real>(x: &Tensor<'s, T>) -> Result<[Tensor<'s, C>; 3]> {
    let channels = x.size(1);
    let each = x.raw.layout.count() / channels.max(1);
    if each == 0 {
        let reason = "a channel without a value has no statistics";
        return Err(x.scope().shape_error(NAME, &[x.into()], reason));
    }
    let too_large = |_| Error::TooLarge { shape: x.sizes().to_vec() };
    u32::try_from(each).map_err(too_large)?;
    let inner = u32::try_from(each / x.size(0)).map_err(too_large)?;
    let count = mul(&size(x, 0)?, inner)?;
    // Real rows come first in each channel, and the kernel knows how many values they have. Its floats are of one type.
    let rows = contiguous(&transpose(&cast::<_, C>(x)?, 0, 1)?)?;
    let rows = rows.alias(Layout::contiguous(&[channels, each])?, 0, PaddedDims::NONE);
    let mut call =
        Call::new(of_reals!(k::floats::batch_norm_training, k::doubles::batch_norm_training), &rows)?;
    call.argument::<u32>(&count)?;
    let (mean, var, sample_var) = call.launch_rows()?;
    Ok([mean, var, sample_var])
}
