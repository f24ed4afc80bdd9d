//! Element-wise arithmetic.

use super::{
    by_type::each_type,
    pointwise::{binary, unary},
};
use crate::{
    Error, Float, Number, Result, Tensor,
    kernel::{call::Call, definition::Kernel as _},
};

#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;

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

/// Kernels of floats.
mod floats {
    use super::super::functions::{normal_cdf, sigmoid};
    use crate::kernel;

    #[kernel]
    pub(super) fn silu(x: f32) -> f32 {
        x * sigmoid(x)
    }

    #[kernel]
    pub(super) fn silu_mul(gate: f32, up: f32) -> f32 {
        silu(gate) * up
    }

    #[kernel]
    pub(super) fn exp(x: f32) -> f32 {
        x.exp()
    }

    #[kernel]
    pub(super) fn log(x: f32) -> f32 {
        x.ln()
    }

    #[kernel]
    pub(super) fn sqrt(x: f32) -> f32 {
        x.sqrt()
    }

    #[kernel]
    pub(super) fn rsqrt(x: f32) -> f32 {
        1.0 / x.sqrt()
    }

    #[kernel]
    pub(super) fn tanh(x: f32) -> f32 {
        x.tanh()
    }

    /// NaN stays NaN.
    #[kernel]
    pub(super) fn relu(x: f32) -> f32 {
        if x < 0.0 { 0.0 } else { x }
    }

    #[kernel]
    pub(super) fn gelu(x: f32) -> f32 {
        x * normal_cdf(x)
    }

    /// `x/2 * (1 + tanh(u))` as `x * sigmoid(2u)`, which does not cancel for negative `x`.
    #[kernel]
    pub(super) fn gelu_tanh(x: f32) -> f32 {
        let twice_u = 2.0 * 0.797_884_6 * (x + 0.044_715 * x * x * x);
        x * sigmoid(twice_u)
    }

    #[kernel]
    pub(super) fn scale(x: f32, factor: f32) -> f32 {
        x * factor
    }

    #[cfg(feature = "cuda")]
    #[kernel]
    pub(super) fn functions(x: f32, y: f32) -> f32 {
        let roots = exp(x) + log(x) + sqrt(x) + rsqrt(x) + tanh(x) + scale(x, y);
        roots + silu_mul(x, y) + relu(x) + gelu(x) + gelu_tanh(x)
    }
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
    /// `a + b`. Integers wrap.
    add: Number, of_numbers!(add).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[8.0, 12.0]";
    /// `a - b`. Integers wrap.
    sub: Number, of_numbers!(sub).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[4.0, 4.0]";
    /// `a * b`. Integers wrap.
    mul: Number, of_numbers!(mul).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[12.0, 32.0]";
    /// `a / b`. Integer division truncates and wraps; division by zero returns 0.
    div: Number, of_numbers!(div).of::<T>(), ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[3.0, 2.0]";
    /// `silu(gate) * up`, the gated half of a SwiGLU block, in one pass.
    silu_mul: Float, floats::silu_mul::DEFINITION, ("[0.0f32, 100.0]", "[2.0f32, 4.0]") => "[0.0, 400.0]";
}

unary! {
    /// `-x`. Integers wrap, so the result for an unsigned `x` is `2^bits - x`.
    neg: Number, of_numbers!(neg).of::<T>(), "[1.0f32, -2.0]" => "[-1.0, 2.0]";
    /// `e^x`.
    exp: Float, floats::exp::DEFINITION, "[0.0f32, f32::NEG_INFINITY]" => "[1.0, 0.0]";
    /// Natural logarithm; `-inf` of 0, NaN below.
    log: Float, floats::log::DEFINITION, "[1.0f32, 0.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Square root; NaN below 0.
    sqrt: Float, floats::sqrt::DEFINITION, "[4.0f32, 9.0]" => "[2.0, 3.0]";
    /// `1 / sqrt(x)`; `inf` of 0, NaN below.
    rsqrt: Float, floats::rsqrt::DEFINITION, "[4.0f32, 0.25]" => "[0.5, 2.0]";
    /// Hyperbolic tangent.
    tanh: Float, floats::tanh::DEFINITION, "[0.0f32, 100.0]" => "[0.0, 1.0]";
    /// `max(x, 0)`.
    relu: Float, floats::relu::DEFINITION, "[-1.0f32, 2.0]" => "[0.0, 2.0]";
    /// GELU, `x * Phi(x)`, with the error function.
    gelu: Float, floats::gelu::DEFINITION, "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// GELU by its tanh approximation (GPT-2, `gelu_new`, `gelu_pytorch_tanh`).
    gelu_tanh: Float, floats::gelu_tanh::DEFINITION, "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// `x * sigmoid(x)`, also known as swish.
    silu: Float, floats::silu::DEFINITION, "[0.0f32, 100.0]" => "[0.0, 100.0]";
}

/// `x * factor`, with a factor that is fixed when the segment is recorded.
///
/// One that changes between calls is a `#[host]` scalar and [`mul`]. Same shape and padding marks as
/// `x`.
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
pub fn scale<'s, T: Float>(x: &Tensor<'s, T>, factor: f32) -> Result<Tensor<'s, T>> {
    if !factor.is_finite() {
        return Err(Error::Argument { op: "scale", why: format!("factor {factor}; it must be finite") });
    }
    let mut call = Call::new(floats::scale::DEFINITION, x)?;
    call.key(factor);
    call.launch()
}
