//! Element-wise arithmetic.

use super::{
    by_type::{each_type, of_reals},
    pointwise::{binary, unary},
};
use crate::{Error, Number, Real, Result, Tensor, kernel::call::Call};

#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// Kernels of all numbers. Those of integers wrap.
macro_rules! numbers {
    ($($module:ident $t:ident neg($x:ident) { $($neg:tt)* })*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn add(a: $t, b: $t) -> $t {
                a + b
            }

            #[kernel]
            pub(super) fn sub(a: $t, b: $t) -> $t {
                a - b
            }

            #[kernel]
            pub(super) fn mul(a: $t, b: $t) -> $t {
                a * b
            }

            #[kernel]
            pub(super) fn div(a: $t, b: $t) -> $t {
                a / b
            }

            #[kernel]
            pub(super) fn neg($x: $t) -> $t {
                $($neg)*
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn arithmetic(a: $t, b: $t) -> $t {
                add(a, b) + sub(a, b) + mul(a, b) + div(a, b) + neg(a)
            }
        }
    )*};
}

numbers! {
    f32s f32 neg(x) { -x }
    i32s i32 neg(x) { -x }
    u32s u32 neg(x) { x.wrapping_neg() }
    u8s u8 neg(x) { x.wrapping_neg() }
    f64s f64 neg(x) { -x }
    i64s i64 neg(x) { -x }
    i8s i8 neg(x) { -x }
}

/// Kernels of floats, with the functions of their types.
macro_rules! floats {
    ($($module:ident $t:ident [$($functions:tt)*];)*) => {$(
        mod $module {
            use $($functions)*::{normal_cdf, sigmoid};
            use crate::kernel;

            #[kernel]
            pub(super) fn silu(x: $t) -> $t {
                x * sigmoid(x)
            }

            #[kernel]
            pub(super) fn silu_mul(gate: $t, up: $t) -> $t {
                silu(gate) * up
            }

            #[kernel]
            pub(super) fn scale(x: $t, factor: $t) -> $t {
                x * factor
            }

            #[kernel]
            pub(super) fn exp(x: $t) -> $t {
                x.exp()
            }

            #[kernel]
            pub(super) fn log(x: $t) -> $t {
                x.ln()
            }

            #[kernel]
            pub(super) fn sqrt(x: $t) -> $t {
                x.sqrt()
            }

            #[kernel]
            pub(super) fn rsqrt(x: $t) -> $t {
                1.0 / x.sqrt()
            }

            #[kernel]
            pub(super) fn tanh(x: $t) -> $t {
                x.tanh()
            }

            /// NaN stays NaN.
            #[kernel]
            pub(super) fn relu(x: $t) -> $t {
                if x < 0.0 { 0.0 } else { x }
            }

            #[kernel]
            pub(super) fn gelu(x: $t) -> $t {
                x * normal_cdf(x)
            }

            /// `x/2 * (1 + tanh(u))` as `x * sigmoid(2u)`, which does not cancel for negative `x`.
            #[kernel]
            pub(super) fn gelu_tanh(x: $t) -> $t {
                let twice_u = 2.0 * 0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x);
                x * sigmoid(twice_u)
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn functions(x: $t, y: $t) -> $t {
                let roots = exp(x) + log(x) + sqrt(x) + rsqrt(x) + tanh(x);
                roots + silu_mul(x, y) + scale(x, y) + relu(x) + gelu(x) + gelu_tanh(x)
            }
        }
    )*};
}

floats! {
    floats f32 [super::super::functions];
    doubles f64 [super::super::functions::doubles];
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        f32s::arithmetic::DEFINITION,
        i32s::arithmetic::DEFINITION,
        u32s::arithmetic::DEFINITION,
        u8s::arithmetic::DEFINITION,
        f64s::arithmetic::DEFINITION,
        i64s::arithmetic::DEFINITION,
        i8s::arithmetic::DEFINITION,
        floats::functions::DEFINITION,
        doubles::functions::DEFINITION,
    ]
    .into_iter()
}

/// The kernels of a name.
macro_rules! of_numbers {
    ($name:ident) => {
        const { &each_type!(f32s::$name) }
    };
}

binary! {
    /// Returns `a + b`. Integers wrap.
    /// Corresponds to `torch.add`.
    add: Number, of_numbers!(add).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[8.0, 12.0]";
    /// Returns `a - b`. Integers wrap.
    /// Corresponds to `torch.sub`.
    sub: Number, of_numbers!(sub).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[4.0, 4.0]";
    /// Returns `a * b`. Integers wrap.
    /// Corresponds to `torch.mul`.
    mul: Number, of_numbers!(mul).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[12.0, 32.0]";
    /// Returns `a / b`. Integer division truncates and wraps; division by zero returns 0.
    /// Corresponds to `torch.div`.
    div: Number, of_numbers!(div).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[3.0, 2.0]";
    /// Returns `silu(gate) * up`, the gated half of a SwiGLU block, in one pass.
    /// Corresponds to `SiluAndMul` of vLLM; the block is that of <https://arxiv.org/abs/2002.05202>.
    silu_mul: Real, of_reals!(floats::silu_mul, doubles::silu_mul), ("[0.0f32, 100.0]", "[2.0f32, 4.0]") => "[0.0, 400.0]";
}

unary! {
    /// Returns `-x`. Integers wrap, so the result for an unsigned `x` is `2^bits - x`.
    /// Corresponds to `torch.neg`.
    neg: Number, of_numbers!(neg).of::<T>(), "[1.0f32, -2.0]" => "[-1.0, 2.0]";
    /// Returns `e^x`.
    /// Corresponds to `torch.exp`.
    exp: Real, of_reals!(floats::exp, doubles::exp), "[0.0f32, f32::NEG_INFINITY]" => "[1.0, 0.0]";
    /// Returns the natural logarithm of `x`; `-inf` for 0, NaN below.
    /// Corresponds to `torch.log`.
    log: Real, of_reals!(floats::log, doubles::log), "[1.0f32, 0.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Returns the square root of `x`; NaN below 0.
    /// Corresponds to `torch.sqrt`.
    sqrt: Real, of_reals!(floats::sqrt, doubles::sqrt), "[4.0f32, 9.0]" => "[2.0, 3.0]";
    /// Returns `1 / sqrt(x)`; `inf` for 0, NaN below.
    /// Corresponds to `torch.rsqrt`.
    rsqrt: Real, of_reals!(floats::rsqrt, doubles::rsqrt), "[4.0f32, 0.25]" => "[0.5, 2.0]";
    /// Returns the hyperbolic tangent of `x`.
    /// Corresponds to `torch.tanh`.
    tanh: Real, of_reals!(floats::tanh, doubles::tanh), "[0.0f32, 100.0]" => "[0.0, 1.0]";
    /// Returns `max(x, 0)`.
    /// Corresponds to `torch.nn.functional.relu`.
    relu: Real, of_reals!(floats::relu, doubles::relu), "[-1.0f32, 2.0]" => "[0.0, 2.0]";
    /// Computes GELU, `x * Phi(x)`, with the error function.
    /// Corresponds to `torch.nn.functional.gelu`.
    gelu: Real, of_reals!(floats::gelu, doubles::gelu), "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// Computes GELU by its tanh approximation (GPT-2, `gelu_new`, `gelu_pytorch_tanh`).
    /// Corresponds to `torch.nn.functional.gelu` with `approximate="tanh"`.
    gelu_tanh: Real, of_reals!(floats::gelu_tanh, doubles::gelu_tanh), "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// Returns `x * sigmoid(x)`, also known as swish.
    /// Corresponds to `torch.nn.functional.silu`.
    silu: Real, of_reals!(floats::silu, doubles::silu), "[0.0f32, 100.0]" => "[0.0, 100.0]";
}

/// Returns `x * factor`, with a factor that is fixed when the segment is recorded.
///
/// One that changes between calls is a `#[host]` scalar and [`mul`]. Same shape and padding marks as
/// `x`.
///
/// Corresponds to `torch.mul` by a Python number. A factor of 64 bits, for an `f64`, is an argument of [`mul`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[1.0f32, -4.0])?;
/// let y = ops::scale(&x, 0.5)?;
/// assert_eq!(step.read(&y)?, [0.5, -2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `factor` is not finite.
pub fn scale<'s, T: Real>(x: &Tensor<'s, T>, factor: f32) -> Result<Tensor<'s, T>> {
    if !factor.is_finite() {
        return Err(Error::Argument { op: "scale", reason: format!("factor {factor}; it must be finite") });
    }
    let mut call = Call::new(of_reals!(floats::scale, doubles::scale), x)?;
    call.number::<T>(factor.into());
    call.launch()
}
