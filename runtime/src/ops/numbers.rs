//! Functions of numbers of every type.

use super::{
    by_type::each_type,
    pointwise::{binary, unary},
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};
use crate::{Argument, Number, Result, Tensor, kernel::call::Call};

/// Kernels of all numbers. A NaN is unequal to itself.
macro_rules! numbers {
    ($([$($module:ident $t:ident),+] remainder($a:ident, $b:ident) $remainder:tt abs($x:ident) $abs:tt sign($y:ident) $sign:tt)*) => {$($(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn minimum(a: $t, b: $t) -> $t {
                if a < b || a != a { a } else { b }
            }

            #[kernel]
            pub(super) fn maximum(a: $t, b: $t) -> $t {
                if a > b || a != a { a } else { b }
            }

            #[kernel]
            pub(super) fn remainder($a: $t, $b: $t) -> $t $remainder

            #[kernel]
            pub(super) fn clamp(x: $t, low: $t, high: $t) -> $t {
                x.clamp(low, high)
            }

            #[kernel]
            pub(super) fn square(x: $t) -> $t {
                x * x
            }

            #[kernel]
            pub(super) fn abs($x: $t) -> $t $abs

            #[kernel]
            pub(super) fn sign($y: $t) -> $t $sign

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn numbers(a: $t, b: $t, c: $t) -> $t {
                minimum(a, b) + maximum(a, c) + remainder(b, c) + clamp(a, b, c) + square(a) + abs(b) + sign(c)
            }
        }
    )+)*};
}

numbers! {
    [f32s f32, f64s f64]
        remainder(a, b) {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        abs(x) { x.abs() }
        sign(x) { if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x } }
    [i32s i32, i64s i64, i8s i8]
        remainder(a, b) {
            let rest = a % b;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        abs(x) { x.abs() }
        sign(x) { x.signum() }
    [u32s u32, u8s u8]
        remainder(a, b) { a % b }
        abs(x) { x }
        sign(x) { x.min(1) }
}

/// The kernel of a name for elements `T`.
macro_rules! kernel_of {
    ($name:ident) => {
        const { &each_type!(f32s::$name) }.of::<T>()
    };
}

binary! {
    /// Returns the smaller of `a` and `b`; NaN if either is NaN.
    /// Corresponds to `torch.minimum`.
    minimum: Number, kernel_of!(minimum), ("[1.0f32, 4.0]", "[2.0f32, 3.0]") => "[1.0, 3.0]";
    /// Returns the larger of `a` and `b`; NaN if either is NaN.
    /// Corresponds to `torch.maximum`.
    maximum: Number, kernel_of!(maximum), ("[1.0f32, 4.0]", "[2.0f32, 3.0]") => "[2.0, 4.0]";
    /// Returns the remainder of `a / b` that has the sign of `b`; for an integer division by zero, `a`.
    /// Corresponds to `torch.remainder`.
    remainder: Number, kernel_of!(remainder), ("[5.0f32, -5.0]", "[3.0f32, 3.0]") => "[2.0, 1.0]";
}

unary! {
    /// Returns `x` without its sign. The smallest signed integer wraps to itself.
    /// Corresponds to `torch.abs`.
    abs: Number, kernel_of!(abs), "[-1.0f32, 2.0]" => "[1.0, 2.0]";
    /// Returns -1, 0 or 1, by the sign of `x`; NaN for NaN.
    /// Corresponds to `torch.sign`.
    sign: Number, kernel_of!(sign), "[-4.0f32, 0.0]" => "[-1.0, 0.0]";
    /// Returns `x * x`. Integers wrap.
    /// Corresponds to `torch.square`.
    square: Number, kernel_of!(square), "[-3.0f32, 0.5]" => "[9.0, 0.25]";
}

/// Returns `x`, but at least `low` and at most `high`; `high` where they are in the wrong order. NaN stays NaN.
///
/// Corresponds to `torch.clamp`.
///
/// A bound that is NaN does not bound. Both may be numbers. Shapes broadcast; padding marks unite. With one bound it is [`maximum`] or [`minimum`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[-2i32, 3, 8])?;
/// assert_eq!(step.read(&ops::clamp(&x, 0, 5)?)?, [0, 3, 5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
pub fn clamp<'s, T: Number>(
    x: &Tensor<'s, T>,
    low: impl Argument<'s, T>,
    high: impl Argument<'s, T>,
) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(kernel_of!(clamp), x)?;
    call.argument(low)?;
    call.argument(high)?;
    call.launch()
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        f32s::numbers::DEFINITION,
        i32s::numbers::DEFINITION,
        u32s::numbers::DEFINITION,
        u8s::numbers::DEFINITION,
        f64s::numbers::DEFINITION,
        i64s::numbers::DEFINITION,
        i8s::numbers::DEFINITION,
    ]
    .into_iter()
}
