//! Activation functions.

use super::pointwise::real_functions;
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    Error, Float, Real, Result, Tensor,
    kernel::{call::Call, definition::Kernel as _},
};

real_functions! {
    activations using [super::super::functions::sigmoid, super::super::functions::doubles::sigmoid as logistic];

    /// Returns `1 / (1 + e^-x)`.
    sigmoid(x) { logistic(x) } "[0.0f32, f32::NEG_INFINITY]" => "[0.5, 0.0]";
    /// Returns `ln(sigmoid(x))`, without overflow.
    logsigmoid(x) { -softplus(-x) } "[200.0f32, -200.0]" => "[-0.0, -200.0]";
    /// Returns `ln(1 + e^x)`, without overflow.
    softplus(x) { if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() } } "[200.0f32, -200.0]" => "[200.0, 0.0]";
    /// Returns `x / (1 + |x|)`.
    softsign(x) { x / (1.0 + x.abs()) } "[1.0f32, -3.0]" => "[0.5, -0.75]";
    /// Returns `x * tanh(softplus(x))`.
    mish(x) { x * softplus(x).tanh() } "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// Returns `x`, clamped between 0 and 6.
    relu6(x) { x.clamp(0.0, 6.0) } "[-1.0f32, 7.0]" => "[0.0, 6.0]";
    /// Returns `x * relu6(x + 3) / 6`.
    hardswish(x) { x * relu6(x + 3.0) / 6.0 } "[-4.0f32, 3.0]" => "[-0.0, 3.0]";
    /// Returns `relu6(x + 3) / 6`.
    hardsigmoid(x) { (x + 3.0).clamp(0.0, 6.0) / 6.0 } "[0.0f32, 4.0]" => "[0.5, 1.0]";
    /// Returns `scale * x` above 0 and `scale * alpha * (e^x - 1)` below, with the constants that keep mean 0 and variance 1.
    selu(x) {
        1.050_700_987_355_480_5 * (if x > 0.0 { x } else { 1.673_263_242_354_377_2 * x.exp_m1() })
    } "[0.0f32, 1.0]" => "[0.0, 1.050_701]";
}

/// Kernels with a parameter.
mod with_parameter {
    use crate::kernel;

    #[kernel]
    pub(super) fn elu(x: f32, alpha: f32) -> f32 {
        if x > 0.0 { x } else { alpha * x.exp_m1() }
    }

    #[kernel]
    pub(super) fn leaky_relu(x: f32, slope: f32) -> f32 {
        if x > 0.0 { x } else { slope * x }
    }

    #[cfg(feature = "cuda")]
    #[kernel]
    pub(super) fn activations_with_parameter(x: f32, parameter: f32) -> f32 {
        elu(x, parameter) + leaky_relu(x, parameter)
    }
}

/// Returns `x` above 0, and `alpha * (e^x - 1)` below.
///
/// `alpha` is a constant of the recording. Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[2.0f32, f32::NEG_INFINITY])?;
/// assert_eq!(step.read(&ops::elu(&x, 1.0)?)?, [2.0, -1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `alpha` is not finite.
pub fn elu<'s, T: Float>(x: &Tensor<'s, T>, alpha: f32) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(with_parameter::elu::DEFINITION, x)?;
    call.key(finite("elu", "alpha", alpha)?);
    call.launch()
}

/// Returns `x` above 0, and `slope * x` below.
///
/// `slope` is a constant of the recording. Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[2.0f32, -2.0])?;
/// assert_eq!(step.read(&ops::leaky_relu(&x, 0.25)?)?, [2.0, -0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `slope` is not finite.
pub fn leaky_relu<'s, T: Float>(x: &Tensor<'s, T>, slope: f32) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(with_parameter::leaky_relu::DEFINITION, x)?;
    call.key(finite("leaky_relu", "slope", slope)?);
    call.launch()
}

fn finite(op: &'static str, what: &str, value: f32) -> Result<f32> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::Argument { op, reason: format!("{what} is {value}; it must be finite") })
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        floats::activations::DEFINITION,
        f64s::activations::DEFINITION,
        with_parameter::activations_with_parameter::DEFINITION,
    ]
    .into_iter()
}
