//! Tensors made from host values that are fixed when a segment is recorded.

use super::compute;
use crate::{Element, Error, Number, Result, Scope, Tensor, backend::Op, layout::Marks};

/// A tensor of `shape` whose every element is `value`.
///
/// # Errors
/// [`Error::Rank`], [`Error::TooLarge`].
pub fn full<'s, T: Element>(scope: Scope<'s>, shape: &[usize], value: T) -> Result<Tensor<'s, T>> {
    compute(scope, Op::Fill(value.to_f64()), &[], shape, Marks::NONE)
}

/// A tensor of zeros (`false`) of `shape`.
///
/// # Errors
/// As [`full`].
pub fn zeros<'s, T: Element>(scope: Scope<'s>, shape: &[usize]) -> Result<Tensor<'s, T>> {
    full(scope, shape, T::from_f64(0.0))
}

/// A tensor with the shape and padding marks of `x`, whose every element is `value`.
///
/// # Errors
/// Only those of every operation (see [`ops`](crate::ops)).
pub fn full_like<'s, T: Element>(x: &Tensor<'s, T>, value: T) -> Result<Tensor<'s, T>> {
    compute(x.scope(), Op::Fill(value.to_f64()), &[], x.shape(), x.raw.marks)
}

/// Zeros (`false`) with the shape and padding marks of `x`.
///
/// # Errors
/// As [`full_like`].
pub fn zeros_like<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    full_like(x, T::from_f64(0.0))
}

/// Ones (`true`) with the shape and padding marks of `x`.
///
/// # Errors
/// As [`full_like`].
pub fn ones_like<'s, T: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    full_like(x, T::from_f64(1.0))
}

/// `0, 1, .., n - 1`, of shape `[n]`. Element types that cannot hold a number round or saturate, as in
/// [`arange_step`].
///
/// # Errors
/// Only those of every operation (see [`ops`](crate::ops)).
pub fn arange<'s, T: Number>(scope: Scope<'s>, n: usize) -> Result<Tensor<'s, T>> {
    arange_step(scope, n, 0.0, 1.0)
}

/// `start + i * step` for `i` in `0..n`, of shape `[n]`, computed in `f64` and then converted: rounded
/// to the nearest of a float type, truncated and saturated to integers, as [`cast`](super::cast) does.
///
/// # Errors
/// [`Error::Argument`] when `start` or `step` is not finite.
pub fn arange_step<'s, T: Number>(
    scope: Scope<'s>,
    n: usize,
    start: f64,
    step: f64,
) -> Result<Tensor<'s, T>> {
    if !start.is_finite() || !step.is_finite() {
        let why = format!("start {start}, step {step}; both must be finite");
        return Err(Error::Argument { op: "arange", why });
    }
    compute(scope, Op::Arange { start, step }, &[], &[n], Marks::NONE)
}
