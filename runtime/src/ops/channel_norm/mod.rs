//! Norms whose weights belong to channels, the second dimension: group norm and batch norm.

use self::kernels as k;
use super::{
    by_type::of_reals,
    check::{Shape, check_eps, refuse},
    shape::reshape,
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    AsOperand, Dim, Error, Real, Result, Tensor,
    backend::View,
    kernel::call::Call,
    tensor::{Operand, Shown},
    value::layout::Layout,
};

mod kernels;
mod training;

pub use training::batch_norm_training;

/// The kernels of these norms, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    k::all()
}

/// Applies group norm: the channels of `x`, `[N, C, ..]`, are divided into `groups`; each group of an item has
/// mean 0 and variance 1, and is then multiplied by `weight` and added to `bias`, both `[C]`.
///
/// As `torch.nn.functional.group_norm`. Computed in f32, an `f64` in f64; what is multiplied by the weight has been rounded to `T`. With as many
/// groups as channels, it is the instance norm. Padding of `N` propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2, 2], &[1.0f32, 3.0, 5.0, 15.0])?;
/// let (w, b) = (step.tensor(&[2], &[1.0f32, 2.0])?, step.tensor(&[2], &[0.0f32, 10.0])?);
/// assert_eq!(step.read(&ops::group_norm(&x, 2, &w, &b, 0.0)?)?, [-1.0, 1.0, 8.0, 12.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit together, or the channels do not divide into the groups;
/// [`Error::Argument`] for no group, or a negative `eps`; [`Error::PaddedMix`] if anything but `N` is padded.
pub fn group_norm<'s, T: Real>(
    x: &Tensor<'s, T>,
    groups: usize,
    weight: &(impl AsOperand<'s, T> + ?Sized),
    bias: &(impl AsOperand<'s, T> + ?Sized),
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "group_norm";
    let scope = x.scope();
    let owned = [weight.operand(NAME, scope)?, bias.operand(NAME, scope)?];
    let eps = eps.into();
    check_eps::<T>(NAME, eps)?;
    if groups == 0 {
        return Err(Error::Argument { op: NAME, reason: "0 groups; at least 1 is needed".to_owned() });
    }
    check(NAME, x, &owned, 1..x.rank())?;
    let channels = x.size(1);
    if !channels.is_multiple_of(groups) {
        let reason = format!("{channels} channels do not divide into {groups} groups");
        return Err(x.scope().shape_error(NAME, &[x.into()], reason));
    }
    let row: usize = x.sizes()[1..].iter().product::<usize>() / groups;
    let rows = reshape(x, [x.dim(0), groups.into(), row.into()])?;
    let mut call = Call::new(of_reals!(k::floats::normalized, k::doubles::normalized), &rows)?;
    call.number::<T>(eps);
    let rows: Tensor<'s, T> = call.launch_rows()?;
    let shape: Vec<Dim<'s>> = x.shape().to_vec();
    let y = reshape(&rows, shape)?;
    let mut call = Call::new(of_reals!(k::floats::affine, k::doubles::affine), &y)?;
    for operand in owned {
        call.operand(along_channels(operand, x.rank())?);
    }
    call.launch()
}

/// Applies batch norm with known statistics, as for inference:
/// `(x - mean) / sqrt(variance + eps) * weight + bias` with one value of each for every channel of `x`,
/// `[N, C, ..]`.
///
/// As `torch.nn.functional.batch_norm` with `training=False`; with `True`, it is [`batch_norm_training`]. Statistics, weight and
/// bias may have another float type than `x`, such as `f32` beside 16 bits; beside an `f64`, they are `f64`. Padding of all
/// dimensions but the channels propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2, 2], &[1.0f32, 3.0, 5.0, 15.0])?;
/// let (mean, var) = (step.tensor(&[2], &[1.0f32, 5.0])?, step.tensor(&[2], &[4.0f32, 25.0])?);
/// let (w, b) = (step.tensor(&[2], &[1.0f32, 2.0])?, step.tensor(&[2], &[0.0f32, 10.0])?);
/// assert_eq!(step.read(&ops::batch_norm(&x, &mean, &var, &w, &b, 0.0)?)?, [0.0, 1.0, 10.0, 14.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit together; [`Error::Argument`] for a negative `eps`; [`Error::DTypeMismatch`]
/// if one of `T` and `W` alone is `f64`; [`Error::PaddedMix`] if the channels are padded.
pub fn batch_norm<'s, T: Real, W: Real>(
    x: &Tensor<'s, T>,
    running_mean: &(impl AsOperand<'s, W> + ?Sized),
    running_var: &(impl AsOperand<'s, W> + ?Sized),
    weight: &(impl AsOperand<'s, W> + ?Sized),
    bias: &(impl AsOperand<'s, W> + ?Sized),
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "batch_norm";
    let scope = x.scope();
    let statistics = [running_mean.operand(NAME, scope)?, running_var.operand(NAME, scope)?];
    let [mean, variance] = statistics;
    let owned = [mean, variance, weight.operand(NAME, scope)?, bias.operand(NAME, scope)?];
    let eps = eps.into();
    check_eps::<T>(NAME, eps)?;
    check_types::<T, W>(NAME)?;
    check(NAME, x, &owned, 1..2)?;
    normalized(x, owned, eps)
}

/// `x` normalised by mean and variance, weight and bias, all `[C]`.
fn normalized<'s, T: Real>(x: &Tensor<'s, T>, by: [Operand; 4], eps: f64) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(of_reals!(k::floats::batch_normalized, k::doubles::batch_normalized), x)?;
    for operand in by {
        call.operand(along_channels(operand, x.rank())?);
    }
    call.number::<T>(eps);
    call.launch()
}

/// Refuses an `f64` beside floats that are computed in `f32`.
fn check_types<T: Real, W: Real>(op: &str) -> Result<()> {
    if T::DTYPE.is_computed_in_f32() == W::DTYPE.is_computed_in_f32() {
        return Ok(());
    }
    let what =
        format!("statistics, weight and bias of `{op}`, which are `f64` if the input is, and only then,");
    Err(Error::DTypeMismatch { what, expected: T::DTYPE, found: W::DTYPE })
}

/// Refuses padding of `axes` and of what belongs to the channels, which must be `[C]`.
fn check<T: Real>(
    op: &'static str,
    x: &Tensor<'_, T>,
    owned: &[Operand],
    axes: std::ops::Range<usize>,
) -> Result<()> {
    // So that errors of the tensor name this operation.
    x.view(op)?;
    let wrong = |reason: String| {
        let shown: Vec<Shown<'_>> = std::iter::once(x.into()).chain(owned.iter().map(Into::into)).collect();
        Err(x.scope().shape_error(op, &shown, reason))
    };
    if x.rank() < 2 {
        return wrong("the input must be `[N, C, ..]`".to_owned());
    }
    refuse(op, x.scope(), x.raw.marks, axes)?;
    for operand in owned {
        refuse(op, x.scope(), operand.marks, 0..operand.view.layout.rank())?;
    }
    let channels = x.size(1);
    if owned.iter().any(|operand| operand.view.layout.shape() != [channels]) {
        return wrong(format!("the input has {channels} channels, so everything else must be [{channels}]"));
    }
    Ok(())
}

/// `[C]` as `[C, 1, ..]`, which broadcasts to an input of this rank.
fn along_channels(operand: Operand, rank: usize) -> Result<Operand> {
    let layout = operand.view.layout;
    let (mut shape, mut strides) = (Shape::from_elem(1, rank - 1), Shape::from_elem(0, rank - 1));
    (shape[0], strides[0]) = (layout.shape()[0], layout.strides()[0]);
    Ok(Operand { view: View { layout: Layout::strided(&shape, &strides)?, ..operand.view }, ..operand })
}
