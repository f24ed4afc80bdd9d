//! Element-wise arithmetic.

use super::{
    by_type::ByType,
    check::{broadcast, spread},
    launch::{compute, own},
};
use crate::{
    AsOperand, Error, Float, Number, Result, Tensor,
    backend::Op,
    kernel::{
        definition::{Constant as _, Kernel as _},
        operation::operation,
    },
};

#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;

/// Kernels of all numbers. Those of integers wrap.
macro_rules! numbers {
    ($($module:ident $t:ident neg($x:ident) { $($neg:tt)* })*) => {$(
        mod $module {
            use crate::kernel;
            #[cfg(feature = "cuda")]
            use crate::kernel::definition::{Definition, Kernel as _};

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
            pub(super) const ALL: [&Definition; 5] =
                [add::DEFINITION, sub::DEFINITION, mul::DEFINITION, div::DEFINITION, neg::DEFINITION];
        }
    )*};
}

numbers! {
    f32s f32 neg(x) { -x }
    i32s i32 neg(x) { -x }
    u32s u32 neg(x) { x.wrapping_neg() }
    u8s u8 neg(x) { x.wrapping_neg() }
}

/// Kernels of floats.
mod floats {
    use super::super::functions::{normal_cdf, sigmoid};
    use crate::kernel;
    #[cfg(feature = "cuda")]
    use crate::kernel::definition::{Definition, Kernel as _};

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
    pub(super) const ALL: [&Definition; 11] = [
        silu::DEFINITION,
        silu_mul::DEFINITION,
        exp::DEFINITION,
        log::DEFINITION,
        sqrt::DEFINITION,
        rsqrt::DEFINITION,
        tanh::DEFINITION,
        relu::DEFINITION,
        gelu::DEFINITION,
        gelu_tanh::DEFINITION,
        scale::DEFINITION,
    ];
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    let numbers = [f32s::ALL, i32s::ALL, u32s::ALL, u8s::ALL];
    numbers.into_iter().flatten().chain(floats::ALL)
}

/// The kernels of a name.
macro_rules! of_numbers {
    ($name:ident) => {
        const { &ByType::new::<f32s::$name, i32s::$name, u32s::$name, u8s::$name>() }
    };
}

fn binary<'s, T: Number>(
    name: &'static str,
    op: Op,
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = a.scope();
    let (a, b) = (own(name, a)?, b.operand(name, scope)?);
    let (shape, marks) = broadcast(name, scope, &[a, b])?;
    let inputs = [spread(name, a.view, &shape)?, spread(name, b.view, &shape)?];
    compute(scope, op, &inputs, &shape, marks)
}

fn unary<'s, T: Number>(op: Op, x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    let view = x.view(op.name())?;
    compute(x.scope(), op, &[view], x.sizes(), x.raw.marks)
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $op:expr, ($a:literal, $b:literal) => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        #[doc = concat!("let a = step.tensor(&[2], &", $a, ")?;")]
        #[doc = concat!("let b = step.tensor(&[2], &", $b, ")?;")]
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&a, &b)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// Returns [`Error::Shape`] if the shapes do not broadcast; [`Error::PaddedMix`] if one dimension is
        /// padded by different symbols.
        pub fn $name<'s, T: $bound>(
            a: &Tensor<'s, T>,
            b: &(impl AsOperand<'s, T> + ?Sized),
        ) -> Result<Tensor<'s, T>> {
            binary(stringify!($name), $op, a, b)
        }
    )*};
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
    silu_mul: Float, Op::fixed(floats::silu_mul::DEFINITION), ("[0.0f32, 100.0]", "[2.0f32, 4.0]") => "[0.0, 400.0]";
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $op:expr, $x:literal => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        #[doc = concat!("let x = step.tensor(&[2], &", $x, ")?;")]
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Same shape and padding marks as `x`.
        ///
        /// # Errors
        /// Returns only the errors of every operation (see [`ops`](crate::ops)).
        pub fn $name<'s, T: $bound>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
            unary($op, x)
        }
    )*};
}

unary! {
    /// `-x`. Integers wrap, so the result for an unsigned `x` is `2^bits - x`.
    neg: Number, of_numbers!(neg).of::<T>(), "[1.0f32, -2.0]" => "[-1.0, 2.0]";
    /// `e^x`.
    exp: Float, Op::fixed(floats::exp::DEFINITION), "[0.0f32, f32::NEG_INFINITY]" => "[1.0, 0.0]";
    /// Natural logarithm; `-inf` of 0, NaN below.
    log: Float, Op::fixed(floats::log::DEFINITION), "[1.0f32, 0.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Square root; NaN below 0.
    sqrt: Float, Op::fixed(floats::sqrt::DEFINITION), "[4.0f32, 9.0]" => "[2.0, 3.0]";
    /// `1 / sqrt(x)`; `inf` of 0, NaN below.
    rsqrt: Float, Op::fixed(floats::rsqrt::DEFINITION), "[4.0f32, 0.25]" => "[0.5, 2.0]";
    /// Hyperbolic tangent.
    tanh: Float, Op::fixed(floats::tanh::DEFINITION), "[0.0f32, 100.0]" => "[0.0, 1.0]";
    /// `max(x, 0)`.
    relu: Float, Op::fixed(floats::relu::DEFINITION), "[-1.0f32, 2.0]" => "[0.0, 2.0]";
    /// GELU, `x * Phi(x)`, with the error function.
    gelu: Float, Op::fixed(floats::gelu::DEFINITION), "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// GELU by its tanh approximation (GPT-2, `gelu_new`, `gelu_pytorch_tanh`).
    gelu_tanh: Float, Op::fixed(floats::gelu_tanh::DEFINITION), "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// `x * sigmoid(x)`, also known as swish.
    silu: Float, Op::fixed(floats::silu::DEFINITION), "[0.0f32, 100.0]" => "[0.0, 100.0]";
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
    unary(operation(floats::scale::DEFINITION, [None, Some(factor.number())].into_iter()), x)
}
