//! One output element from the elements at the same place of the inputs.

use super::prelude::*;

/// Functions of one argument: `[x] -> [y]`, same dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unary {
    /// `-x`
    Neg,
    /// `e^x`
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// `1/sqrt(x)`
    Rsqrt,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`
    Relu,
    /// `x * Phi(x)`, with the error function.
    Gelu,
    /// GELU by the tanh approximation.
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `x * factor`
    Scale(f32),
}

impl Operation for Unary {
    fn name(&self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::Tanh => "tanh",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Silu => "silu",
            Self::Scale(_) => "scale",
        }
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        std::mem::discriminant(self).hash(&mut to);
        if let Self::Scale(factor) = self {
            to.write_u32(factor.to_bits());
        }
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::elementwise::unary(access, launch, *self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::elementwise::unary(gpu, launch, *self)
    }
}

/// Functions of two arguments: `[a, b] -> [y]`, same dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`; integer division by zero returns 0.
    Div,
    /// `silu(a) * b`
    SiluMul,
}

impl Operation for Binary {
    fn name(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::SiluMul => "silu_mul",
        }
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::elementwise::binary(access, launch, *self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::elementwise::binary(gpu, launch, *self)
    }
}

/// Comparisons: `[a, b] -> [y: bool]`. Any comparison with NaN is false, but `Ne`, which is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
}

impl Operation for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.hash(&mut to);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::elementwise::compare(access, launch, *self);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::elementwise::compare(gpu, launch, *self)
    }
}

/// `[cond: bool, a, b] -> [y]`
pub(crate) const SELECT: Op = Op::fixed(&Select);

#[derive(Debug)]
struct Select;

impl Operation for Select {
    fn name(&self) -> &'static str {
        "where"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::elementwise::select(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::elementwise::select(gpu, launch)
    }
}

/// `[x] -> [y]`: converts between dtypes (floats to integers truncate and saturate, NaN is 0).
pub(crate) const CAST: Op = Op::fixed(&Cast);

#[derive(Debug)]
struct Cast;

impl Operation for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::elementwise::cast(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::elementwise::cast(gpu, launch)
    }
}
