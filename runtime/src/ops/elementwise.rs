//! Element-wise arithmetic.

use super::{broadcast, compute, own, spread};
use crate::{
    AsOperand, Error, Float, Number, Result, Tensor,
    backend::{Binary, Op, Unary},
};

fn binary<'s, T: Number>(
    name: &'static str,
    kind: Binary,
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = a.scope();
    let (a, b) = (own(name, a)?, b.operand(name, scope)?);
    let (shape, marks) = broadcast(name, scope, &[a, b])?;
    let inputs = [spread(name, a.view, &shape)?, spread(name, b.view, &shape)?];
    compute(scope, Op::Binary(kind), &inputs, &shape, marks)
}

fn unary<'s, T: Number>(kind: Unary, x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    let op = Op::Unary(kind);
    let view = x.view(op.name())?;
    compute(x.scope(), op, &[view], x.sizes(), x.raw.marks)
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// [`Error::Shape`] when the shapes do not broadcast; [`Error::PaddedMix`] when one dimension
        /// is padded by different symbols.
        pub fn $name<'s, T: $bound>(
            a: &Tensor<'s, T>,
            b: &(impl AsOperand<'s, T> + ?Sized),
        ) -> Result<Tensor<'s, T>> {
            binary(stringify!($name), Binary::$kind, a, b)
        }
    )*};
}

binary! {
    /// `a + b`. Integers wrap.
    add: Number, Add;
    /// `a - b`. Integers wrap.
    sub: Number, Sub;
    /// `a * b`. Integers wrap.
    mul: Number, Mul;
    /// `a / b`. Integer division truncates and wraps; by zero it gives 0.
    div: Number, Div;
    /// `silu(gate) * up`, the gated half of a SwiGLU block, in one pass.
    silu_mul: Float, SiluMul;
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kind:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Same shape and padding marks as `x`.
        ///
        /// # Errors
        /// Only those of every operation (see [`ops`](crate::ops)).
        pub fn $name<'s, T: $bound>(x: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
            unary(Unary::$kind, x)
        }
    )*};
}

unary! {
    /// `-x`. Integers wrap, so an unsigned `x` gives `2^bits - x`.
    neg: Number, Neg;
    /// `e^x`.
    exp: Float, Exp;
    /// Natural logarithm; `-inf` of 0, NaN below.
    log: Float, Log;
    /// Square root; NaN below 0.
    sqrt: Float, Sqrt;
    /// `1 / sqrt(x)`; `inf` of 0, NaN below.
    rsqrt: Float, Rsqrt;
    /// Hyperbolic tangent.
    tanh: Float, Tanh;
    /// `max(x, 0)`.
    relu: Float, Relu;
    /// GELU, `x * Phi(x)`, with the error function.
    gelu: Float, Gelu;
    /// GELU by its tanh approximation (GPT-2, `gelu_new`, `gelu_pytorch_tanh`).
    gelu_tanh: Float, GeluTanh;
    /// `x * sigmoid(x)`, also known as swish.
    silu: Float, Silu;
}

/// `x * factor`, with a factor that is fixed when the segment is recorded.
///
/// One that changes between calls is a `#[host]` scalar and [`mul`]. Same shape and padding marks as
/// `x`.
///
/// # Errors
/// [`Error::Argument`] when `factor` is not finite.
pub fn scale<'s, T: Float>(x: &Tensor<'s, T>, factor: f32) -> Result<Tensor<'s, T>> {
    if !factor.is_finite() {
        return Err(Error::Argument { op: "scale", why: format!("factor {factor}; it must be finite") });
    }
    unary(Unary::Scale(factor), x)
}
