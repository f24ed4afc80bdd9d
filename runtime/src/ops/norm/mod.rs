//! Rows normalised by their own statistics.

use self::kernels as k;
use super::{
    by_type::of_reals,
    check::{check_eps, meet, refuse},
    launch::own,
};
use crate::{
    AsOperand, Error, Real, Result, Scope, Tensor,
    kernel::{
        call::{Call, Results},
        definition::Definition,
    },
    tensor::Operand,
};

mod kernels;

/// The kernels of this folder, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) use kernels::all as kernels;

/// The last axis of `x`, unpadded and as long as each weight.
fn last_axis(name: &'static str, scope: Scope<'_>, x: Operand, weights: &[Operand]) -> Result<()> {
    let shape = x.view.layout.shape();
    let Some(&d) = shape.last() else {
        return Err(Error::shape(name, &[shape], "a scalar has no last dimension to normalise; give it one"));
    };
    refuse(name, scope, x.marks, [shape.len() - 1])?;
    for w in weights {
        refuse(name, scope, w.marks, [0])?;
        if w.view.layout.shape() != [d] {
            let reason = format!("weight and bias must be [{d}], as the last dimension of the input is {d}");
            return Err(scope.shape_error(name, &[(&x).into(), w.into()], reason));
        }
    }
    Ok(())
}

/// Applies layer normalisation over the last axis: `(x - mean) / sqrt(variance + eps) * w + b`.
///
/// Corresponds to `torch.nn.functional.layer_norm`.
///
/// `x` is `[.., D]`, `w` and `b` are `[D]`. The variance is that of the population; statistics are
/// computed in f32, those of an `f64` in f64. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[1.0f32, 3.0])?; // mean 2, variance 1
/// let w = step.tensor(&[2], &[1.0f32, 1.0])?;
/// let b = step.tensor(&[2], &[0.0f32, 10.0])?;
/// assert_eq!(step.read(&ops::layer_norm(&x, &w, &b, 0.0)?)?, [-1.0, 11.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::Argument`] for a negative `eps`; [`Error::PaddedMix`] if the last axis
/// is padded.
pub fn layer_norm<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "layer_norm";
    let scope = x.scope();
    let vectors = [w.operand(NAME, scope)?, b.operand(NAME, scope)?];
    let eps = eps.into();
    check_eps::<T>(NAME, eps)?;
    last_axis(NAME, scope, own(NAME, x)?, &vectors)?;
    launched(of_reals!(k::floats::layer_norm, k::doubles::layer_norm), x, &vectors, eps)
}

/// Applies root-mean-square normalisation over the last axis: `x / sqrt(mean(x^2) + eps) * w`.
///
/// Corresponds to `torch.nn.functional.rms_norm`; the paper is <https://arxiv.org/abs/1910.07467>.
///
/// `x` is `[.., D]`, `w` is `[D]`. Statistics are computed in f32, those of an `f64` in f64. Padding of the other dimensions
/// propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[2.0f32, -2.0])?;
/// let w = step.tensor(&[2], &[1.0f32, 10.0])?;
/// assert_eq!(step.read(&ops::rms_norm(&x, &w, 0.0)?)?, [1.0, -10.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`layer_norm`].
pub fn rms_norm<'s, T: Real>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    eps: impl Into<f64>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "rms_norm";
    let scope = x.scope();
    let weight = w.operand(NAME, scope)?;
    let eps = eps.into();
    check_eps::<T>(NAME, eps)?;
    last_axis(NAME, scope, own(NAME, x)?, &[weight])?;
    launched(of_reals!(k::floats::rms_norm, k::doubles::rms_norm), x, &[weight], eps)
}

/// Returns `x + added`, and its [`rms_norm`], in one kernel: the typical step between the parts of a transformer.
///
/// Corresponds to `fused_add_rms_norm` of vLLM, which writes in place; in PyTorch to `torch.add` and `torch.nn.functional.rms_norm`.
///
/// `x` and `added` are `[.., D]` of one shape, `w` is `[D]`. The sum is rounded to the element type before
/// it is normalised, so the results are those of [`add`](super::add) and [`rms_norm`]. Padding of the
/// other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[1.0f32, -1.0])?;
/// let w = step.tensor(&[2], &[1.0f32, 10.0])?;
/// let (sum, y) = ops::add_rms_norm(&x, &x, &w, 0.0)?;
/// assert_eq!(step.read(&sum)?, [2.0, -2.0]);
/// assert_eq!(step.read(&y)?, [1.0, -10.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`layer_norm`]; [`Error::PaddedMix`] also when a dimension is padded by different
/// symbols.
pub fn add_rms_norm<'s, T: Real>(
    x: &Tensor<'s, T>,
    added: &(impl AsOperand<'s, T> + ?Sized),
    w: &(impl AsOperand<'s, T> + ?Sized),
    eps: impl Into<f64>,
) -> Result<(Tensor<'s, T>, Tensor<'s, T>)> {
    const NAME: &str = "add_rms_norm";
    let scope = x.scope();
    let (summand, other, weight) = (own(NAME, x)?, added.operand(NAME, scope)?, w.operand(NAME, scope)?);
    let eps = eps.into();
    check_eps::<T>(NAME, eps)?;
    let (shape, other_shape) = (summand.view.layout.shape(), other.view.layout.shape());
    let mut marks = summand.marks;
    for axis in 0..if shape.len() == other_shape.len() { shape.len() } else { 0 } {
        marks = marks.with(axis, meet(NAME, scope, axis, summand.marks.get(axis), other.marks.get(axis))?);
    }
    if shape != other_shape {
        let reason = "both summands must have one shape";
        return Err(scope.shape_error(NAME, &[(&summand).into(), (&other).into()], reason));
    }
    last_axis(NAME, scope, Operand { marks, ..summand }, &[weight])?;
    launched(k::add_rms_norm::<T>(), x, &[other, weight], eps)
}

/// A kernel of rows, of operands beside `x` and an epsilon.
fn launched<'s, T: Real, R: Results<'s>>(
    definition: &'static Definition,
    x: &Tensor<'s, T>,
    operands: &[Operand],
    eps: f64,
) -> Result<R> {
    let mut call = Call::new(definition, x)?;
    operands.iter().for_each(|operand| call.operand(*operand));
    call.number::<T>(eps);
    call.launch_rows()
}
