//! Losses, of each element or each row: means of them are `mean`, or `masked_mean` where there is padding.

use super::{
    by_type::of_reals,
    check::{check_axis, meet, refuse, shown},
    pointwise::binary,
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};
use crate::{AsOperand, Error, Real, Result, Tensor, kernel::call::Call};

/// Kernels of floats.
macro_rules! losses {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn l1_loss(x: $t, target: $t) -> $t {
                (x - target).abs()
            }

            #[kernel]
            pub(super) fn mse_loss(x: $t, target: $t) -> $t {
                (x - target) * (x - target)
            }

            #[kernel]
            pub(super) fn smooth_l1_loss(x: $t, target: $t) -> $t {
                let distance = (x - target).abs();
                if distance < 1.0 { 0.5 * distance * distance } else { distance - 0.5 }
            }

            #[kernel]
            pub(super) fn kl_div(x: $t, target: $t) -> $t {
                if target == 0.0 { 0.0 } else { target * (target.ln() - x) }
            }

            #[kernel]
            pub(super) fn binary_cross_entropy_with_logits(x: $t, target: $t) -> $t {
                (if x > 0.0 { x } else { x * 0.0 }) - x * target + (-x.abs()).exp().ln_1p()
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn losses(x: $t, y: $t) -> $t {
                let distances = l1_loss(x, y) + mse_loss(x, y) + smooth_l1_loss(x, y);
                distances + kl_div(x, y) + binary_cross_entropy_with_logits(x, y)
            }

            #[kernel(rows)]
            pub(super) fn nll_loss(log_probs: Row<$t>, label: i32, ignored: i32) -> $t {
                let loss = -log_probs.at(if label == ignored { 0 } else { label });
                if label == ignored { 0.0 } else { loss }
            }

            #[kernel(rows)]
            pub(super) fn cross_entropy(logits: Row<$t>, label: i32, ignored: i32, smoothing: $t) -> $t {
                let max = logits.max();
                // Without the largest, which would round what is left of a logit that is close to it.
                let total = logits.map(|v| (v - max).exp()).sum().ln();
                let of_label = total - (logits.at(if label == ignored { 0 } else { label }) - max);
                let of_all = total - logits.map(|v| v - max).sum() / logits.len() as $t;
                let smoothed = (1.0 - smoothing) * of_label + smoothing * of_all;
                let loss = if smoothing > 0.0 { smoothed } else { of_label };
                if label == ignored { 0.0 } else { loss }
            }

            #[kernel(rows)]
            pub(super) fn nll_loss_weighted(
                log_probs: Row<$t>,
                weights: Row<$t>,
                label: i32,
                ignored: i32,
            ) -> ($t, $t) {
                let class = if label == ignored { 0 } else { label };
                let weight = weights.at(class);
                let loss = -log_probs.at(class) * weight;
                if label == ignored { (0.0, 0.0) } else { (loss, weight) }
            }

            #[kernel(rows)]
            pub(super) fn cross_entropy_weighted(
                logits: Row<$t>,
                weights: Row<$t>,
                label: i32,
                ignored: i32,
                smoothing: $t,
            ) -> ($t, $t) {
                let class = if label == ignored { 0 } else { label };
                let max = logits.max();
                // As `cross_entropy`.
                let total = logits.map(|v| (v - max).exp()).sum().ln();
                let weight = weights.at(class);
                let of_label = weight * (total - (logits.at(class) - max));
                let of_all = logits.zip(weights).map(|(v, w)| w * (total - (v - max))).sum() / logits.len() as $t;
                let smoothed = (1.0 - smoothing) * of_label + smoothing * of_all;
                let loss = if smoothing > 0.0 { smoothed } else { of_label };
                if label == ignored { (0.0, 0.0) } else { (loss, weight) }
            }
        }
    )*};
}

losses! {
    of f32
    f64s f64
}

binary! {
    /// `|a - b|`, the L1 loss of each element.
    /// Corresponds to `torch.nn.functional.l1_loss` with `reduction="none"`.
    l1_loss: Real, of_reals!(of::l1_loss, f64s::l1_loss), ("[6.0f32, 8.0]", "[2.0f32, 9.0]") => "[4.0, 1.0]";
    /// `(a - b)^2`, the squared error of each element.
    /// Corresponds to `torch.nn.functional.mse_loss` with `reduction="none"`.
    mse_loss: Real, of_reals!(of::mse_loss, f64s::mse_loss), ("[6.0f32, 8.0]", "[2.0f32, 9.0]") => "[16.0, 1.0]";
    /// Half of the squared error of each element where that is at most 1, and `|a - b| - 0.5` elsewhere.
    /// Corresponds to `torch.nn.functional.smooth_l1_loss` with `reduction="none"`.
    smooth_l1_loss: Real, of_reals!(of::smooth_l1_loss, f64s::smooth_l1_loss), ("[6.0f32, 8.0]", "[2.0f32, 8.5]") => "[3.5, 0.125]";
    /// `b * (ln(b) - a)`, of which the sum over a distribution `b` is its Kullback-Leibler divergence from the distribution
    /// whose logarithm is `a`; 0 where `b` is, and NaN where `b` is negative, which no distribution is.
    /// Corresponds to `torch.nn.functional.kl_div` with `reduction="none"`.
    kl_div: Real, of_reals!(of::kl_div, f64s::kl_div), ("[0.0f32, -7.0]", "[1.0f32, 0.0]") => "[0.0, 0.0]";
    /// The cross-entropy of `sigmoid(a)` with the probability `b`, for each element, without overflow.
    /// Corresponds to `torch.nn.functional.binary_cross_entropy_with_logits` with `reduction="none"`.
    binary_cross_entropy_with_logits: Real, of_reals!(of::binary_cross_entropy_with_logits, f64s::binary_cross_entropy_with_logits),
        ("[200.0f32, -200.0]", "[1.0f32, 1.0]") => "[0.0, 200.0]";
}

/// Returns the cross-entropy of each row of `logits`, along the last dimension, with its label; 0 where the label is
/// `ignore_index`.
///
/// Corresponds to `torch.nn.functional.cross_entropy` with `reduction="none"`; the classes are last here.
///
/// `logits` of `[.., C]` and `labels` of `[..]`, `i32`; the result is `[..]`. With `label_smoothing`, from 0 to 1, that part of
/// the target is spread over all classes. The mean over the labels that are not ignored is
/// `masked_mean(&loss, &ops::ne(&labels, ignore_index)?, 0)`. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 2], &[0.0f32, 200.0, 5.0, 5.0])?;
/// let labels = step.tensor(&[2], &[0, -100])?;
/// assert_eq!(step.read(&ops::cross_entropy(&logits, &labels, -100, 0.0)?)?, [200.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit, or a row is empty; [`Error::Argument`] if `label_smoothing` is not from 0
/// to 1; [`Error::PaddedMix`] if the classes are padded, or one dimension is by different symbols. Later, at a read:
/// [`Error::IndexOutOfRange`] for a label that is not a class.
pub fn cross_entropy<'s, T: Real>(
    logits: &Tensor<'s, T>,
    labels: &(impl AsOperand<'s, i32> + ?Sized),
    ignore_index: i32,
    label_smoothing: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    let label_smoothing = smoothing("cross_entropy", label_smoothing.into())?;
    let mut call =
        of_labels(Call::new(of_reals!(of::cross_entropy, f64s::cross_entropy), logits)?, logits, labels)?;
    call.key(ignore_index);
    call.number::<T>(label_smoothing);
    call.launch_rows()
}

/// Returns the negative of each row of `log_probs`, along the last dimension, at its label; 0 where the label
/// is `ignore_index`.
///
/// Corresponds to `torch.nn.functional.nll_loss` with `reduction="none"`; the classes are last here.
///
/// [`cross_entropy`] of logits is this of their [`log_softmax`](super::log_softmax). Shapes and padding are those of
/// [`cross_entropy`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let log_probs = step.tensor(&[2, 2], &[-0.5f32, -1.0, -2.0, -3.0])?;
/// let labels = step.tensor(&[2], &[1, -100])?;
/// assert_eq!(step.read(&ops::nll_loss(&log_probs, &labels, -100)?)?, [1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`cross_entropy`].
pub fn nll_loss<'s, T: Real>(
    log_probs: &Tensor<'s, T>,
    labels: &(impl AsOperand<'s, i32> + ?Sized),
    ignore_index: i32,
) -> Result<Tensor<'s, T>> {
    let mut call =
        of_labels(Call::new(of_reals!(of::nll_loss, f64s::nll_loss), log_probs)?, log_probs, labels)?;
    call.key(ignore_index);
    call.launch_rows()
}

/// Computes [`cross_entropy`] with a weight for each class, `[C]`, by which the loss of a row with that label
/// is multiplied, and the weight of each row's label; both are 0 where the label is `ignore_index`.
///
/// As `torch.nn.functional.cross_entropy` with `weight`; of the part of the target that `label_smoothing` spreads over all
/// classes, each has its own weight. The mean is the sum of the losses divided by that of the weights.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 2], &[0.0f32, 200.0, 5.0, 5.0])?;
/// let labels = step.tensor(&[2], &[0, -100])?;
/// let weights = step.tensor(&[2], &[0.5f32, 2.0])?;
/// let (loss, weight) = ops::cross_entropy_weighted(&logits, &labels, &weights, -100, 0.0)?;
/// assert_eq!(step.read(&loss)?, [100.0, 0.0]);
/// assert_eq!(step.read(&weight)?, [0.5, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`cross_entropy`]; [`Error::Shape`] as well if there is not one weight for each class.
pub fn cross_entropy_weighted<'s, T: Real>(
    logits: &Tensor<'s, T>,
    labels: &(impl AsOperand<'s, i32> + ?Sized),
    weights: &(impl AsOperand<'s, T> + ?Sized),
    ignore_index: i32,
    label_smoothing: impl Into<f64>,
) -> Result<(Tensor<'s, T>, Tensor<'s, T>)> {
    let label_smoothing = smoothing("cross_entropy_weighted", label_smoothing.into())?;
    let call = Call::new(of_reals!(of::cross_entropy_weighted, f64s::cross_entropy_weighted), logits)?;
    let mut call = of_labels(weighted(call, logits, weights)?, logits, labels)?;
    call.key(ignore_index);
    call.number::<T>(label_smoothing);
    call.launch_rows()
}

/// Computes [`nll_loss`] with a weight for each class, `[C]`, and the weight of each row's label, as
/// [`cross_entropy_weighted`].
///
/// Corresponds to `torch.nn.functional.nll_loss` with `weight` and `reduction="none"`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let log_probs = step.tensor(&[2, 2], &[-0.5f32, -1.0, -2.0, -3.0])?;
/// let labels = step.tensor(&[2], &[1, 0])?;
/// let weights = step.tensor(&[2], &[0.5f32, 3.0])?;
/// let (loss, weight) = ops::nll_loss_weighted(&log_probs, &labels, &weights, -100)?;
/// let mean = ops::div(&ops::sum(&loss, 0)?, &ops::sum(&weight, 0)?)?;
/// assert_eq!(step.item(&mean)?, 4.0 / 3.5);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`cross_entropy_weighted`].
pub fn nll_loss_weighted<'s, T: Real>(
    log_probs: &Tensor<'s, T>,
    labels: &(impl AsOperand<'s, i32> + ?Sized),
    weights: &(impl AsOperand<'s, T> + ?Sized),
    ignore_index: i32,
) -> Result<(Tensor<'s, T>, Tensor<'s, T>)> {
    let call = Call::new(of_reals!(of::nll_loss_weighted, f64s::nll_loss_weighted), log_probs)?;
    let mut call = of_labels(weighted(call, log_probs, weights)?, log_probs, labels)?;
    call.key(ignore_index);
    call.launch_rows()
}

fn smoothing(op: &'static str, label_smoothing: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&label_smoothing) {
        return Ok(label_smoothing);
    }
    let reason = format!("label_smoothing is {}; it must be from 0 to 1", shown(label_smoothing));
    Err(Error::Argument { op, reason })
}

/// Adds the weights of the classes, which are the same for all rows.
fn weighted<'s, T: Real>(
    mut call: Call<'s>,
    rows: &Tensor<'s, T>,
    weights: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Call<'s>> {
    let name = call.name();
    let weights = weights.operand(name, rows.scope())?;
    let classes = rows.sizes().last().copied();
    if weights.view.layout.rank() == 1 {
        refuse(name, rows.scope(), weights.marks, [0])?;
    }
    if weights.view.layout.shape() != classes.as_slice() {
        let reason = "there must be a weight for each class, which are along the last dimension of the rows";
        return Err(rows.scope().shape_error(name, &[rows.into(), (&weights).into()], reason));
    }
    call.operand(weights);
    Ok(call)
}

/// Adds the labels, of which each row has one.
fn of_labels<'s, T: Real>(
    mut call: Call<'s>,
    rows: &Tensor<'s, T>,
    labels: &(impl AsOperand<'s, i32> + ?Sized),
) -> Result<Call<'s>> {
    let name = call.name();
    let Some(last) = rows.rank().checked_sub(1) else {
        check_axis(name, 0, 0)?;
        return Ok(call);
    };
    let labels = labels.operand(name, rows.scope())?;
    if labels.view.layout.rank() == last {
        for axis in 0..last {
            meet(name, rows.scope(), axis, rows.raw.marks.get(axis), labels.marks.get(axis))?;
        }
    }
    if rows.size(last) == 0 || labels.view.layout.shape() != &rows.sizes()[..last] {
        let reason = "the labels have the dimensions of the rows without the last one, which is not empty";
        return Err(rows.scope().shape_error(name, &[rows.into(), (&labels).into()], reason));
    }
    call.operand(labels);
    Ok(call)
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    super::by_type::definitions!(
        [of, f64s] [losses, cross_entropy, nll_loss, cross_entropy_weighted, nll_loss_weighted]
    )
}
