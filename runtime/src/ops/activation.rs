//! Activation functions.

use super::{
    by_type::of_reals,
    check::{computed, shown},
    pointwise::real_functions,
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Kernel as _;
use crate::{
    Error, Real, Result, Tensor,
    kernel::{call::Call, definition::Definition},
};

real_functions! {
    activations using [super::super::functions::sigmoid, super::super::functions::doubles::sigmoid as logistic];

    /// Returns `1 / (1 + e^-x)`.
    /// Corresponds to `torch.sigmoid`.
    sigmoid(x) { logistic(x) } "[0.0f32, f32::NEG_INFINITY]" => "[0.5, 0.0]";
    /// Returns `ln(sigmoid(x))`, without overflow.
    /// Corresponds to `torch.nn.functional.logsigmoid`.
    logsigmoid(x) { -softplus(-x) } "[200.0f32, -200.0]" => "[-0.0, -200.0]";
    /// Returns `ln(1 + e^x)`, without overflow.
    /// Corresponds to `torch.nn.functional.softplus`.
    softplus(x) { if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() } } "[200.0f32, -200.0]" => "[200.0, 0.0]";
    /// Returns `x / (1 + |x|)`.
    /// Corresponds to `torch.nn.functional.softsign`.
    softsign(x) { x / (1.0 + x.abs()) } "[1.0f32, -3.0]" => "[0.5, -0.75]";
    /// Returns `x * tanh(softplus(x))`.
    /// Corresponds to `torch.nn.functional.mish`.
    mish(x) { x * softplus(x).tanh() } "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// Returns `x`, clamped between 0 and 6.
    /// Corresponds to `torch.nn.functional.relu6`.
    relu6(x) { x.clamp(0.0, 6.0) } "[-1.0f32, 7.0]" => "[0.0, 6.0]";
    /// Returns `x * relu6(x + 3) / 6`.
    /// Corresponds to `torch.nn.functional.hardswish`.
    hardswish(x) { x * relu6(x + 3.0) / 6.0 } "[-4.0f32, 3.0]" => "[-0.0, 3.0]";
    /// Returns `relu6(x + 3) / 6`.
    /// Corresponds to `torch.nn.functional.hardsigmoid`.
    hardsigmoid(x) { (x + 3.0).clamp(0.0, 6.0) / 6.0 } "[0.0f32, 4.0]" => "[0.5, 1.0]";
    /// Returns `scale * x` above 0 and `scale * alpha * (e^x - 1)` below, with the constants that keep mean 0 and variance 1.
    /// Corresponds to `torch.nn.functional.selu`.
    selu(x) {
        1.050_700_987_355_480_5 * (if x > 0.0 { x } else { 1.673_263_242_354_377_2 * x.exp_m1() })
    } "[0.0f32, 1.0]" => "[0.0, 1.050_701]";
    /// Returns `x - tanh(x)`. Where the difference would cancel, it is a quotient of sums instead, so small results keep their digits.
    /// Corresponds to `torch.nn.functional.tanhshrink`.
    tanhshrink(x) {
        let square = x * x;
        // `taken / of` is `1 - tanh(x) / x`, by the continued fraction of `tanh(x) / x` up to 15. For `|x| < 0.625`, what is
        // cut off is less than rounding, in `f64` as well.
        let taken = square * (675_675.0 + square * (45_045.0 + square * (594.0 + square)));
        let of = 2_027_025.0 + square * (945_945.0 + square * (51_975.0 + square * (630.0 + square)));
        if x.abs() < 0.625 { x * (taken / of) } else { x - x.tanh() }
    } "[0.0f32, f32::INFINITY]" => "[0.0, f32::INFINITY]";
}

/// Kernels with parameters, of one type.
macro_rules! with_parameters {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn elu(x: $t, alpha: $t) -> $t {
                if x > 0.0 { x } else { alpha * x.exp_m1() }
            }

            #[kernel]
            pub(super) fn leaky_relu(x: $t, slope: $t) -> $t {
                if x > 0.0 { x } else { slope * x }
            }

            #[kernel]
            pub(super) fn celu(x: $t, alpha: $t) -> $t {
                if x > 0.0 { x } else { alpha * (x / alpha).exp_m1() }
            }

            /// NaN stays NaN.
            #[kernel]
            pub(super) fn hardshrink(x: $t, lambda: $t) -> $t {
                if x >= -lambda && x <= lambda { 0.0 } else { x }
            }

            /// NaN stays NaN.
            #[kernel]
            pub(super) fn softshrink(x: $t, lambda: $t) -> $t {
                if x > lambda {
                    x - lambda
                } else if x < -lambda {
                    x + lambda
                } else if x.is_nan() {
                    x
                } else {
                    0.0
                }
            }

            /// NaN stays NaN.
            #[kernel]
            pub(super) fn threshold(x: $t, bound: $t, value: $t) -> $t {
                if x <= bound { value } else { x }
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn activations_with_parameters(x: $t, a: $t, b: $t) -> $t {
                let of_one = elu(x, a) + leaky_relu(x, b) + celu(x, a);
                of_one + hardshrink(x, a) + softshrink(x, a) + threshold(x, a, b)
            }
        }
    )*};
}

with_parameters! {
    floats_with_parameters f32
    f64s_with_parameters f64
}

/// Returns `x` above 0, and `alpha * (e^x - 1)` below.
///
/// Corresponds to `torch.nn.functional.elu`.
///
/// `alpha` is a constant of the recording, in the type that elements `T` are computed in. Same shape and padding marks as `x`.
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
pub fn elu<'s, T: Real>(x: &Tensor<'s, T>, alpha: impl Into<f64>) -> Result<Tensor<'s, T>> {
    let alpha = finite::<T>("elu", "alpha", alpha.into())?;
    with_numbers(of_reals!(floats_with_parameters::elu, f64s_with_parameters::elu), x, &[alpha])
}

/// Returns `x` above 0, and `slope * x` below.
///
/// Corresponds to `torch.nn.functional.leaky_relu`.
///
/// `slope` is a constant of the recording, in the type that elements `T` are computed in. Same shape and padding marks as `x`.
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
pub fn leaky_relu<'s, T: Real>(x: &Tensor<'s, T>, slope: impl Into<f64>) -> Result<Tensor<'s, T>> {
    let slope = finite::<T>("leaky_relu", "slope", slope.into())?;
    with_numbers(of_reals!(floats_with_parameters::leaky_relu, f64s_with_parameters::leaky_relu), x, &[slope])
}

/// Returns `x` above 0, and `alpha * (e^(x / alpha) - 1)` below.
///
/// Corresponds to `torch.nn.functional.celu`.
///
/// `alpha` is a constant of the recording. Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[2.0f32, f32::NEG_INFINITY])?;
/// assert_eq!(step.read(&ops::celu(&x, 0.5)?)?, [2.0, -0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `alpha` is 0 or not finite in the type that elements `T` are computed in.
pub fn celu<'s, T: Real>(x: &Tensor<'s, T>, alpha: f64) -> Result<Tensor<'s, T>> {
    let computed = computed::<T>(alpha);
    if computed == 0.0 || !computed.is_finite() {
        let rule = match T::DTYPE.is_computed_in_f32() {
            true => "must be finite and not 0 as an f32, in which it is computed",
            false => "must be finite and not 0",
        };
        return Err(wrong("celu", "alpha", alpha, rule));
    }
    with_numbers(of_reals!(floats_with_parameters::celu, f64s_with_parameters::celu), x, &[alpha])
}

/// Returns `x`, but 0 from `-lambda` to `lambda`, both included. NaN stays NaN.
///
/// Corresponds to `torch.nn.functional.hardshrink`.
///
/// `lambda` is a constant of the recording, rounded to `T` as an element of a tensor is. With a negative one, the result is
/// `x`. Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[-2.0f32, -0.5, 0.25, 1.0])?;
/// assert_eq!(step.read(&ops::hardshrink(&x, 0.5)?)?, [-2.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `lambda` is not finite as a `T`.
pub fn hardshrink<'s, T: Real>(x: &Tensor<'s, T>, lambda: f64) -> Result<Tensor<'s, T>> {
    let rounded = T::from_f64(lambda).to_f64();
    if !rounded.is_finite() {
        return Err(wrong("hardshrink", "lambda", lambda, "must be finite as an element"));
    }
    with_numbers(
        of_reals!(floats_with_parameters::hardshrink, f64s_with_parameters::hardshrink),
        x,
        &[rounded],
    )
}

/// Returns `x - lambda` above `lambda`, `x + lambda` below `-lambda`, and 0 between them. NaN stays NaN.
///
/// Corresponds to `torch.nn.functional.softshrink`.
///
/// `lambda` is a constant of the recording, rounded to `T` as an element of a tensor is. Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[-2.0f32, -0.5, 0.25, 1.0])?;
/// assert_eq!(step.read(&ops::softshrink(&x, 0.5)?)?, [-1.5, 0.0, 0.0, 0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `lambda` is negative, or not finite as a `T`.
pub fn softshrink<'s, T: Real>(x: &Tensor<'s, T>, lambda: f64) -> Result<Tensor<'s, T>> {
    let rounded = T::from_f64(lambda).to_f64();
    if lambda < 0.0 || !rounded.is_finite() {
        return Err(wrong("softshrink", "lambda", lambda, "must be at least 0, and finite as an element"));
    }
    with_numbers(
        of_reals!(floats_with_parameters::softshrink, f64s_with_parameters::softshrink),
        x,
        &[rounded],
    )
}

/// Returns `value` where `x <= threshold`, and `x` elsewhere, so that NaN stays NaN.
///
/// Corresponds to `torch.nn.functional.threshold`.
///
/// Both numbers are constants of the recording, rounded to `T` as elements of a tensor are; they may be infinite or NaN. Same
/// shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[-2.0f32, 0.5, 1.0])?;
/// assert_eq!(step.read(&ops::threshold(&x, 0.5, 20.0)?)?, [20.0, 20.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn threshold<'s, T: Real>(x: &Tensor<'s, T>, threshold: f64, value: f64) -> Result<Tensor<'s, T>> {
    let numbers = [threshold, value].map(|number| T::from_f64(number).to_f64());
    with_numbers(of_reals!(floats_with_parameters::threshold, f64s_with_parameters::threshold), x, &numbers)
}

/// A kernel of a tensor and numbers, in the type that its elements are computed in.
fn with_numbers<'s, T: Real>(
    definition: &'static Definition,
    x: &Tensor<'s, T>,
    numbers: &[f64],
) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(definition, x)?;
    numbers.iter().for_each(|number| call.number::<T>(*number));
    call.launch()
}

fn wrong(op: &'static str, what: &str, value: f64, rule: &str) -> Error {
    Error::Argument { op, reason: format!("{what} is {}; it {rule}", shown(value)) }
}

fn finite<T: Real>(op: &'static str, what: &str, value: f64) -> Result<f64> {
    if computed::<T>(value).is_finite() {
        return Ok(value);
    }
    Err(wrong(op, what, value, "must be finite"))
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        floats::activations::DEFINITION,
        f64s::activations::DEFINITION,
        floats_with_parameters::activations_with_parameters::DEFINITION,
        f64s_with_parameters::activations_with_parameters::DEFINITION,
    ]
    .into_iter()
}
