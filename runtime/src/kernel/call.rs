//! From the arguments of an operation to its launch.

use smallvec::SmallVec;

use super::{
    definition::{Compute, Constant, Definition, Number, Padded},
    operation::{Padding, operation},
};
use crate::{
    AsOperand, DType, Element, Float, Operand, Result, Scope, Tensor,
    backend::{Op, View},
    bf16, f16,
    tensor::broadcast::{broadcast, spread},
    value::layout::Marks,
};

/// A call of a kernel, whose arguments are added one by one.
#[derive(Debug)]
pub struct Call<'s> {
    pub(super) definition: &'static Definition,
    pub(super) scope: Scope<'s>,
    arguments: SmallVec<[Given; 4]>,
}

/// An argument.
#[derive(Clone, Copy, Debug)]
enum Given {
    Tensor(Operand),
    Constant(Number),
}

/// An argument of an element-wise operation after the first: a reference to a tensor, a scalar, a parameter or state
/// with elements `T`, or a number.
///
/// A number becomes a constant of the recording; for tensors of `f16` and `bf16` it is an `f32`. One that changes from
/// call to call is a `#[host]` scalar, or a `#[key]`, which has a recording for each value.
///
/// ```
/// use graphable::prelude::*;
///
/// /// One that varies, and a constant.
/// #[graphable]
/// fn line(#[host] #[dims(B)] x: &Tensor<f32>, #[host] slope: &Scalar<f32>) -> Result<Tensor<f32>> {
///     ops::add(&ops::mul(x, slope)?, 1.0)
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let graph = LineGraph::builder().build(&mut rt)?;
/// # for slope in [2.0, 3.0, 4.0] {
/// # let step = rt.step()?;
/// # let y = graph.call(&step, &[0.0, 1.0], slope)?;
/// # assert_eq!(step.read(&y)?, [1.0, slope + 1.0]);
/// # }
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of an operation on elements `{T}`",
    label = "expected a reference to a tensor, scalar, parameter or state of `{T}`, or a number",
    note = "cast other element types with `ops::cast`"
)]
pub trait Argument<'s, T> {
    /// Adds it to a call.
    ///
    /// # Errors
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes).
    #[doc(hidden)]
    fn give(self, call: &mut Call<'s>) -> Result<()>;
}

impl<'s, T, A: AsOperand<'s, T> + ?Sized> Argument<'s, T> for &A {
    fn give(self, call: &mut Call<'s>) -> Result<()> {
        let operand = self.operand(call.definition.name, call.scope)?;
        call.arguments.push(Given::Tensor(operand));
        Ok(())
    }
}

impl<'s, T, A: AsOperand<'s, T> + ?Sized> Argument<'s, T> for &mut A {
    fn give(self, call: &mut Call<'s>) -> Result<()> {
        (&*self).give(call)
    }
}

impl<'s, T: Float> Argument<'s, T> for f32 {
    fn give(self, call: &mut Call<'s>) -> Result<()> {
        call.constant(self)
    }
}

macro_rules! numbers {
    ($($t:ident)*) => {$(
        impl<'s> Argument<'s, $t> for $t {
            fn give(self, call: &mut Call<'s>) -> Result<()> {
                call.constant(self)
            }
        }
    )*};
}

numbers!(i32 u32 u8 bool);

impl<'s> Call<'s> {
    /// Creates a call whose first argument is a tensor, which determines the step.
    ///
    /// # Errors
    /// Returns the errors of the tensor, for example if its step has ended.
    pub fn new<T: Element>(definition: &'static Definition, first: &Tensor<'s, T>) -> Result<Self> {
        let mut call = Self { definition, scope: first.scope(), arguments: SmallVec::new() };
        first.give(&mut call)?;
        Ok(call)
    }

    /// Creates a call without an argument so far.
    #[must_use]
    pub fn within(definition: &'static Definition, scope: Scope<'s>) -> Self {
        Self { definition, scope, arguments: SmallVec::new() }
    }

    /// The next argument.
    ///
    /// # Errors
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes).
    pub fn argument<T>(&mut self, argument: impl Argument<'s, T>) -> Result<()> {
        argument.give(self)
    }

    /// The next argument, which is a number.
    pub fn key(&mut self, value: impl Constant) {
        self.arguments.push(Given::Constant(value.number()));
    }

    /// The next argument, which the caller has checked to belong to the scope.
    pub(crate) fn operand(&mut self, operand: Operand) {
        self.arguments.push(Given::Tensor(operand));
    }

    /// Returns the name of the kernel.
    pub(crate) fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Numbers as the bits of elements `T`, for a kernel that moves these.
    pub(crate) fn moving<T: Element>(mut self) -> Self {
        for given in &mut self.arguments {
            let Given::Constant(Number { bits, compute }) = given else { continue };
            let value = f32::from_bits(*bits);
            (*compute, *bits) = match T::DTYPE {
                DType::F16 => (Compute::U16, u32::from(f16::from_f32(value).to_bits())),
                DType::Bf16 => (Compute::U16, u32::from(bf16::from_f32(value).to_bits())),
                DType::F32 | DType::I32 | DType::U32 => (Compute::U32, *bits),
                DType::U8 | DType::Bool => (Compute::U8, *bits),
            };
        }
        self
    }

    fn constant(&mut self, value: impl Constant) -> Result<()> {
        self.key(value);
        Ok(())
    }

    /// Allocates the outputs and launches.
    ///
    /// # Errors
    /// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast, and
    /// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
    pub fn launch<R: Results<'s>>(&self) -> Result<R> {
        let name = self.definition.name;
        let operands: SmallVec<[Operand; 4]> = self.operands().map(|(_, operand)| operand).collect();
        let (shape, marks) = broadcast(name, self.scope, &operands)?;
        let mut inputs: SmallVec<[View; 4]> = SmallVec::new();
        for operand in &operands {
            inputs.push(spread(name, operand.view, &shape)?);
        }
        let op = self.operation(Padded::default());
        let results = R::allocate(self.scope, &op, &|_| (&shape[..], marks))?;
        // Devices refuse empty grids.
        if !shape.contains(&0) {
            self.scope.launch(op, &inputs, &results.views())?;
        }
        Ok(results)
    }

    /// The tensors among the arguments, each with the number of its parameter.
    pub(crate) fn operands(&self) -> impl Iterator<Item = (usize, Operand)> {
        self.arguments.iter().enumerate().filter_map(|(i, given)| match given {
            Given::Tensor(operand) => Some((i, *operand)),
            Given::Constant(_) => None,
        })
    }

    pub(super) fn operation(&self, padding: impl Padding) -> Op {
        operation(self.definition, self.arguments.iter().map(Given::constant), padding)
    }
}

impl Given {
    fn constant(&self) -> Option<Number> {
        match self {
            Self::Tensor(_) => None,
            Self::Constant(number) => Some(*number),
        }
    }
}

/// The result of an operation: a tensor, or a tuple of tensors.
pub trait Results<'s>: Sized {
    /// Tensors to be written, each of its shape and marks.
    #[doc(hidden)]
    fn allocate<'a>(scope: Scope<'s>, op: &Op, of: &dyn Fn(usize) -> (&'a [usize], Marks)) -> Result<Self>;

    /// Returns their memory.
    #[doc(hidden)]
    fn views(&self) -> SmallVec<[View; 1]>;
}

impl<'s, T: Element> Results<'s> for Tensor<'s, T> {
    fn allocate<'a>(scope: Scope<'s>, op: &Op, of: &dyn Fn(usize) -> (&'a [usize], Marks)) -> Result<Self> {
        let (shape, marks) = of(0);
        scope.empty(op, shape, marks)
    }

    fn views(&self) -> SmallVec<[View; 1]> {
        SmallVec::from_elem(self.raw.view(), 1)
    }
}

macro_rules! several {
    ($($($t:ident $at:tt),*;)*) => {$(
        impl<'s, $($t: Element),*> Results<'s> for ($(Tensor<'s, $t>,)*) {
            fn allocate<'a>(
                scope: Scope<'s>,
                op: &Op,
                of: &dyn Fn(usize) -> (&'a [usize], Marks),
            ) -> Result<Self> {
                Ok(($({
                    let (shape, marks) = of($at);
                    scope.empty::<$t>(op, shape, marks)?
                },)*))
            }

            fn views(&self) -> SmallVec<[View; 1]> {
                SmallVec::from_slice(&[$(self.$at.raw.view()),*])
            }
        }
    )*};
}

several! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}
