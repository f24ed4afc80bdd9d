//! Element-wise arithmetic.

use super::{
    check::{broadcast, spread},
    launch::{compute, own},
};
use crate::{
    AsOperand, Error, Float, Number, Result, Tensor,
    backend::{
        Op,
        operations::{Binary, Unary},
    },
};

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
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident, ($a:literal, $b:literal) => $result:literal;)*) => {$(
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
            binary(stringify!($name), Op::fixed(&Binary::$kind), a, b)
        }
    )*};
}

binary! {
    /// `a + b`. Integers wrap.
    add: Number, Add, ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[8.0, 12.0]";
    /// `a - b`. Integers wrap.
    sub: Number, Sub, ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[4.0, 4.0]";
    /// `a * b`. Integers wrap.
    mul: Number, Mul, ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[12.0, 32.0]";
    /// `a / b`. Integer division truncates and wraps; division by zero returns 0.
    div: Number, Div, ("[6.0f32, 8.0]", "[2.0f32, 4.0]") => "[3.0, 2.0]";
    /// `silu(gate) * up`, the gated half of a SwiGLU block, in one pass.
    silu_mul: Float, SiluMul, ("[0.0f32, 100.0]", "[2.0f32, 4.0]") => "[0.0, 400.0]";
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident, $x:literal => $result:literal;)*) => {$(
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
            unary(Op::fixed(&Unary::$kind), x)
        }
    )*};
}

unary! {
    /// `-x`. Integers wrap, so the result for an unsigned `x` is `2^bits - x`.
    neg: Number, Neg, "[1.0f32, -2.0]" => "[-1.0, 2.0]";
    /// `e^x`.
    exp: Float, Exp, "[0.0f32, f32::NEG_INFINITY]" => "[1.0, 0.0]";
    /// Natural logarithm; `-inf` of 0, NaN below.
    log: Float, Log, "[1.0f32, 0.0]" => "[0.0, f32::NEG_INFINITY]";
    /// Square root; NaN below 0.
    sqrt: Float, Sqrt, "[4.0f32, 9.0]" => "[2.0, 3.0]";
    /// `1 / sqrt(x)`; `inf` of 0, NaN below.
    rsqrt: Float, Rsqrt, "[4.0f32, 0.25]" => "[0.5, 2.0]";
    /// Hyperbolic tangent.
    tanh: Float, Tanh, "[0.0f32, 100.0]" => "[0.0, 1.0]";
    /// `max(x, 0)`.
    relu: Float, Relu, "[-1.0f32, 2.0]" => "[0.0, 2.0]";
    /// GELU, `x * Phi(x)`, with the error function.
    gelu: Float, Gelu, "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// GELU by its tanh approximation (GPT-2, `gelu_new`, `gelu_pytorch_tanh`).
    gelu_tanh: Float, GeluTanh, "[0.0f32, 100.0]" => "[0.0, 100.0]";
    /// `x * sigmoid(x)`, also known as swish.
    silu: Float, Silu, "[0.0f32, 100.0]" => "[0.0, 100.0]";
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
    unary(Unary::Scale(factor).into(), x)
}
