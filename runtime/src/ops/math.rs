//! Mathematical functions of floats.

use super::{
    by_type::of_reals,
    pointwise::{binary, real_functions},
};
use crate::Real;
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

real_functions! {
    math using [
        super::super::functions::error_function, super::super::functions::doubles::error_function as error_function,
        super::super::functions::complementary_error_function,
        super::super::functions::doubles::complementary_error_function as complementary_error_function
    ];

    /// Returns the sine of `x` radians.
    /// Corresponds to `torch.sin`.
    sin(x) { x.sin() } "[0.0f32, -0.0]" => "[0.0, -0.0]";
    /// Returns the cosine of `x` radians.
    /// Corresponds to `torch.cos`.
    cos(x) { x.cos() } "[0.0f32, -0.0]" => "[1.0, 1.0]";
    /// Returns the tangent of `x` radians.
    /// Corresponds to `torch.tan`.
    tan(x) { x.tan() } "[0.0f32, -0.0]" => "[0.0, -0.0]";
    /// Returns the arc sine, in radians; NaN outside -1 to 1.
    /// Corresponds to `torch.asin`.
    asin(x) { x.asin() } "[0.0f32, -0.0]" => "[0.0, -0.0]";
    /// Returns the arc cosine, in radians; NaN outside -1 to 1.
    /// Corresponds to `torch.acos`.
    acos(x) { x.acos() } "[1.0f32, 1.0]" => "[0.0, 0.0]";
    /// Returns the arc tangent, in radians.
    /// Corresponds to `torch.atan`.
    atan(x) { x.atan() } "[0.0f32, -0.0]" => "[0.0, -0.0]";
    /// Returns the hyperbolic sine.
    /// Corresponds to `torch.sinh`.
    sinh(x) { x.sinh() } "[0.0f32, f32::INFINITY]" => "[0.0, f32::INFINITY]";
    /// Returns the hyperbolic cosine.
    /// Corresponds to `torch.cosh`.
    cosh(x) { x.cosh() } "[0.0f32, f32::INFINITY]" => "[1.0, f32::INFINITY]";
    /// Returns the inverse of [`sinh`].
    /// Corresponds to `torch.asinh`.
    asinh(x) { x.asinh() } "[0.0f32, f32::INFINITY]" => "[0.0, f32::INFINITY]";
    /// Returns the inverse of [`cosh`]; NaN below 1.
    /// Corresponds to `torch.acosh`.
    acosh(x) { x.acosh() } "[1.0f32, f32::INFINITY]" => "[0.0, f32::INFINITY]";
    /// Returns the inverse of [`tanh`](super::tanh); NaN outside -1 to 1.
    /// Corresponds to `torch.atanh`.
    atanh(x) { x.atanh() } "[0.0f32, 1.0]" => "[0.0, f32::INFINITY]";
    /// Returns `2^x`.
    /// Corresponds to `torch.exp2`.
    exp2(x) { x.exp2() } "[3.0f32, -1.0]" => "[8.0, 0.5]";
    /// Returns `e^x - 1`, which keeps the digits of the result for `x` near 0.
    /// Corresponds to `torch.expm1`.
    expm1(x) { x.exp_m1() } "[0.0f32, f32::NEG_INFINITY]" => "[0.0, -1.0]";
    /// Returns the logarithm to base 2; `-inf` for 0, NaN below.
    /// Corresponds to `torch.log2`.
    log2(x) { x.log2() } "[8.0f32, 0.5]" => "[3.0, -1.0]";
    /// Returns the logarithm to base 10; `-inf` for 0, NaN below.
    /// Corresponds to `torch.log10`.
    log10(x) { x.log10() } "[1.0f32, 0.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Returns `ln(1 + x)`, which keeps the digits of `x` near 0; `-inf` for -1, NaN below.
    /// Corresponds to `torch.log1p`.
    log1p(x) { x.ln_1p() } "[0.0f32, -1.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Returns the largest whole number that is not above `x`.
    /// Corresponds to `torch.floor`.
    floor(x) { x.floor() } "[1.5f32, -1.5]" => "[1.0, -2.0]";
    /// Returns the smallest whole number that is not below `x`.
    /// Corresponds to `torch.ceil`.
    ceil(x) { x.ceil() } "[1.5f32, -1.5]" => "[2.0, -1.0]";
    /// Returns the nearest whole number; of two, the even one.
    /// Corresponds to `torch.round`.
    round(x) { x.round_ties_even() } "[0.5f32, 1.5]" => "[0.0, 2.0]";
    /// Returns the nearest whole number towards zero.
    /// Corresponds to `torch.trunc`.
    trunc(x) { x.trunc() } "[1.5f32, -1.5]" => "[1.0, -1.0]";
    /// Returns the part that [`trunc`] removes, with the sign of `x`.
    /// Corresponds to `torch.frac`.
    frac(x) { x.fract() } "[1.5f32, -1.25]" => "[0.5, -0.25]";
    /// Returns `1 / x`.
    /// Corresponds to `torch.reciprocal`.
    reciprocal(x) { x.recip() } "[4.0f32, -0.5]" => "[0.25, -2.0]";
    /// Returns the error function of `x`.
    /// Corresponds to `torch.erf`.
    erf(x) { error_function(x) } "[0.0f32, f32::INFINITY]" => "[0.0, 1.0]";
    /// Returns `1 - erf(x)`, which keeps the digits of small results.
    /// Corresponds to `torch.erfc`.
    erfc(x) { complementary_error_function(x) } "[0.0f32, f32::INFINITY]" => "[1.0, 0.0]";
}

/// Kernels of two floats.
macro_rules! of_two {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn pow(a: $t, b: $t) -> $t {
                a.powf(b)
            }

            #[kernel]
            pub(super) fn atan2(a: $t, b: $t) -> $t {
                a.atan2(b)
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn math_of_two(a: $t, b: $t) -> $t {
                pow(a, b) + atan2(a, b)
            }
        }
    )*};
}

of_two! {
    floats_of_two f32
    f64s_of_two f64
}

binary! {
    /// Returns `a` to the power `b`; NaN for a negative `a` unless `b` is whole.
    /// Corresponds to `torch.pow`.
    pow: Real, of_reals!(floats_of_two::pow, f64s_of_two::pow), ("[3.0f32, 4.0]", "[2.0f32, 0.5]") => "[9.0, 2.0]";
    /// Returns the angle of the point `(b, a)`, in radians from -π to π.
    /// Corresponds to `torch.atan2`.
    atan2: Real, of_reals!(floats_of_two::atan2, f64s_of_two::atan2),
        ("[0.0f32, -0.0]", "[1.0f32, 2.0]") => "[0.0, -0.0]";
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        floats::math::DEFINITION,
        f64s::math::DEFINITION,
        floats_of_two::math_of_two::DEFINITION,
        f64s_of_two::math_of_two::DEFINITION,
    ]
    .into_iter()
}
