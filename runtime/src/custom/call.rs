//! A launch of a custom operation: its arguments, checks, and outputs.

use std::{fmt, marker::PhantomData};

use smallvec::SmallVec;

use super::CustomOp;
use crate::{
    AsOperand, Element, Error, IntoDim, IntoShape, Result, Scope, State, Tensor,
    backend::{
        Op, View,
        custom::{Argument, CustomOperation, ScalarArgument},
    },
    base::rank::MAX_RANK,
    tensor::{Operand, Shown},
    value::layout::Marks,
};

/// A launch of a [`CustomOp`] whose arguments are being named, in the order of the parameters of its kernel.
///
/// It borrows its operands until it is run: their memory must not become the memory of something else.
///
/// ```compile_fail,E0716
/// # use graphable::{custom::CustomOp, prelude::*};
/// # let op = CustomOp::builder("copy").cpu(|_| Ok(())).build();
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// # let x = step.tensor(&[2], &[1.0f32; 2])?;
/// let call = op.call(x.scope()).input(&ops::neg(&x)?); // the tensor is dropped here
/// let y = call.output::<f32>(x.shape()).run()?;
/// # Ok::<(), Error>(())
/// ```
///
/// The first mistake is kept, and returned by [`run`](Self::run). `O` is what `run` returns: `()` without outputs, a tensor,
/// or a tuple of tensors.
#[must_use = "`run` launches the operation"]
pub struct Call<'c, 's, O = ()> {
    op: CustomOp,
    scope: Scope<'s>,
    /// Behind a pointer, because each method passes the launch on.
    parts: Box<Parts>,
    /// The outputs; `Err` is the first mistake.
    made: Result<O>,
    /// The operands, which are borrowed until it is run.
    operands: PhantomData<&'c ()>,
}

/// What was named so far. Few allocators have a fast path for more than a kilobyte.
#[derive(Default)]
struct Parts {
    arguments: SmallVec<[Argument; 8]>,
    inputs: SmallVec<[Operand; 4]>,
    outputs: SmallVec<[Operand; 1]>,
    states: Vec<View>,
    real_sizes: Vec<View>,
    /// The symbols whose real size is passed.
    counted: Vec<u8>,
}

const _: () = assert!(size_of::<Parts>() <= 1024);

/// Outputs of a launch, and one more.
pub trait AndOutput<T> {
    /// All of them.
    type All;
    /// Adds one.
    fn and(self, output: T) -> Self::All;
}

impl<T> AndOutput<T> for () {
    type All = T;
    fn and(self, output: T) -> T {
        output
    }
}

impl<'s, A, T> AndOutput<T> for Tensor<'s, A> {
    type All = (Self, T);
    fn and(self, output: T) -> (Self, T) {
        (self, output)
    }
}

impl<A, B, T> AndOutput<T> for (A, B) {
    type All = (A, B, T);
    fn and(self, output: T) -> (A, B, T) {
        (self.0, self.1, output)
    }
}

impl<A, B, C, T> AndOutput<T> for (A, B, C) {
    type All = (A, B, C, T);
    fn and(self, output: T) -> (A, B, C, T) {
        (self.0, self.1, self.2, output)
    }
}

impl<'c, 's> Call<'c, 's> {
    pub(crate) fn new(op: CustomOp, scope: Scope<'s>) -> Self {
        Self { op, scope, parts: Box::default(), made: Ok(()), operands: PhantomData }
    }
}

impl<'c, 's, O> Call<'c, 's, O> {
    /// Passes the elements of an operand, row-major: a pointer to the first.
    ///
    /// [`run`](Self::run) returns [`Error::Shape`] if the operand is strided: make it contiguous with
    /// [`ops::contiguous`](crate::ops::contiguous), or pass a [`view`](Self::view).
    pub fn input<T: Element>(self, x: &'c (impl AsOperand<'s, T> + ?Sized)) -> Self {
        self.checked(|call| {
            let operand = x.operand(call.op.name(), call.scope)?;
            if !operand.view.layout.is_contiguous() {
                let why = "an input is strided, and the kernel reads rows end to end; pass `ops::contiguous(&x)?`, or a view";
                return Err(call.scope.shape_error(call.op.name(), &[(&operand).into()], why));
            }
            let index = call.add_input(operand)?;
            call.parts.arguments.push(Argument::Input(index));
            Ok(())
        })
    }

    /// Passes an operand with any strides: a `graphable_view` of `graphable.cuh`, by value.
    pub fn view<T: Element>(self, x: &'c (impl AsOperand<'s, T> + ?Sized)) -> Self {
        self.checked(|call| {
            let operand = x.operand(call.op.name(), call.scope)?;
            let index = call.add_input(operand)?;
            call.parts.arguments.push(Argument::View(index));
            Ok(())
        })
    }

    /// Passes state that the operation reads and writes in place: a pointer to its first element. A launch that writes state
    /// may have padded inputs only along dimensions whose [real size](Self::real_size) it passes. [`run`](Self::run) returns
    /// [`Error::Argument`] if the state is an input, too, or is passed twice.
    pub fn state<T: Element>(self, state: &'c State<T>) -> Self {
        self.checked(|call| {
            let view = state.operand(call.op.name(), call.scope)?.view;
            call.parts.arguments.push(Argument::State(place(&call.op, call.parts.states.len())?));
            call.parts.states.push(view);
            Ok(())
        })
    }

    /// Passes a host value, which becomes a constant of a recording. One that changes between calls is a `#[host]` scalar,
    /// passed as an [`input`](Self::input).
    pub fn scalar(self, value: impl ScalarArgument) -> Self {
        self.checked(|call| {
            call.parts.arguments.push(Argument::value(value));
            Ok(())
        })
    }

    /// Passes the size of a dimension as a `u64`: `x.dim(0)`, or a number. For a padded dimension, it is the
    /// bucket's.
    pub fn size(self, dim: impl IntoDim<'s>) -> Self {
        let dim = dim.into_dim();
        self.checked(|call| {
            let (size, _) = call.scope.resolve_dim(call.op.name(), dim)?;
            call.parts.arguments.push(Argument::value(size as u64));
            Ok(())
        })
    }

    /// Passes the number of elements of an operand as a `u64`, with the rows of the padding.
    pub fn count<T: Element>(self, x: &(impl AsOperand<'s, T> + ?Sized)) -> Self {
        self.checked(|call| {
            let count = x.operand(call.op.name(), call.scope)?.view.layout.count();
            call.parts.arguments.push(Argument::value(count as u64));
            Ok(())
        })
    }

    /// Passes the real size of a dimension, `x.dim(0)`: a pointer to a `u32` on the device, or null if the dimension is not
    /// padded. The operation must not read beyond that size in any input that is padded alike.
    pub fn real_size(self, dim: impl IntoDim<'s>) -> Self {
        let dim = dim.into_dim();
        self.checked(|call| {
            let (_, symbol) = call.scope.resolve_dim(call.op.name(), dim)?;
            let count = symbol.and_then(|symbol| call.scope.real_count(symbol));
            let index = match count {
                None => None,
                Some(_) => Some(place(&call.op, call.parts.real_sizes.len())?),
            };
            call.parts.arguments.push(Argument::RealSize(index));
            call.parts.real_sizes.extend(count);
            call.parts.counted.extend(symbol);
            Ok(())
        })
    }

    /// Passes the address of the workspace of a kernel.
    pub fn workspace(self) -> Self {
        self.checked(|call| {
            call.parts.arguments.push(Argument::Workspace);
            Ok(())
        })
    }

    /// Makes an output of this shape and passes a pointer to its first element. Sizes of padded dimensions are passed as they
    /// are, `x.shape()` or `(x.dim(0), 4)`: the output is padded alike.
    pub fn output<T: Element>(mut self, shape: impl IntoShape<'s>) -> Call<'c, 's, O::All>
    where
        O: AndOutput<Tensor<'s, T>>,
    {
        let sizes = shape.into_sizes();
        let made = std::mem::replace(&mut self.made, Err(Error::NeverComputed { op: self.op.name() }));
        let made = made.and_then(|made| {
            let name = self.op.name();
            let given = self.scope.resolve(name, sizes)?;
            let index = place(&self.op, self.parts.outputs.len())?;
            let out = self.scope.output::<T>(name, &given.sizes, given.marks)?;
            self.parts.outputs.push(Operand { view: out.raw.view(), marks: given.marks });
            self.parts.arguments.push(Argument::Output(index));
            Ok(made.and(out))
        });
        let Self { op, scope, parts, .. } = self;
        Call { op, scope, parts, made, operands: PhantomData }
    }

    /// Refuses the launch with [`Error::Shape`] unless the operands fit together, which the caller has found out. The message
    /// names the operation and the shapes of the inputs so far.
    ///
    /// ```
    /// # use graphable::{custom::CustomOp, prelude::*};
    /// # let op = CustomOp::builder("dot").cpu(|_| Ok(())).build();
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// # let (a, b) = (step.tensor(&[2], &[1.0f32; 2])?, step.tensor(&[3], &[1.0f32; 3])?);
    /// let dot = op.call(a.scope()).input(&a).input(&b).require(a.dim(0) == b.dim(0), "the vectors must be equally long");
    /// let refused = dot.output::<f32>(()).run().unwrap_err();
    /// assert_eq!(refused.to_string(), "dot: the vectors must be equally long; shapes are [[2], [3]]");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn require(self, fits: bool, why: &str) -> Self {
        self.checked(|call| {
            if fits {
                return Ok(());
            }
            let shown: SmallVec<[Shown<'_>; 4]> = call.parts.inputs.iter().map(Into::into).collect();
            Err(call.scope.shape_error(call.op.name(), &shown, why))
        })
    }

    /// Launches, and returns the outputs. It is asynchronous.
    ///
    /// # Errors
    /// The first mistake in the arguments; [`Error::Argument`] for [state](Self::state) that is another operand, too;
    /// [`Error::PaddedMix`]; [`Error::NotCapturable`]; [`Error::NoCode`]; [`Error::Compile`]; the errors of every operation
    /// (see [`ops`](crate::ops)).
    pub fn run(self) -> Result<O> {
        if self.made.is_ok() {
            self.check_padding()?;
        }
        let made = self.made?;
        let Parts { arguments, inputs, outputs, states, real_sizes, .. } = *self.parts;
        let (operands, count) = (inputs.len(), outputs.len());
        let outputs: SmallVec<[View; 2]> = outputs.iter().map(|output| output.view).chain(states).collect();
        if outputs.iter().all(|view| view.layout.count() == 0) {
            // Nothing is written; devices refuse empty grids.
            return Ok(made);
        }
        let inputs: SmallVec<[View; 6]> = inputs.iter().map(|input| input.view).chain(real_sizes).collect();
        let definition = self.op.definition;
        let op = Op::from(CustomOperation { definition, arguments, operands, made: count });
        self.scope.launch(op, &inputs, &outputs)?;
        Ok(made)
    }

    /// Adds an argument, unless there was a mistake before.
    fn checked(mut self, add: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        if self.made.is_ok()
            && let Err(mistake) = add(&mut self)
        {
            self.made = Err(mistake);
        }
        self
    }

    fn add_input(&mut self, operand: Operand) -> Result<u8> {
        let index = place(&self.op, self.parts.inputs.len())?;
        self.parts.inputs.push(operand);
        Ok(index)
    }

    /// Refuses padded inputs where their padding could become part of real values.
    fn check_padding(&self) -> Result<()> {
        let name = self.op.name();
        let keeps = self.op.keeps_padding && self.parts.states.is_empty();
        for input in self.parts.inputs.iter().filter(|input| input.marks.any()) {
            for axis in 0..MAX_RANK {
                let Some(symbol) =
                    input.marks.get(axis).filter(|symbol| !self.parts.counted.contains(symbol))
                else {
                    continue;
                };
                let kept = keeps && self.parts.outputs.iter().all(|output| has(output.marks, symbol));
                if !kept {
                    self.scope.refuse_padded(name, input.marks, axis)?;
                }
            }
        }
        Ok(())
    }
}

fn has(marks: Marks, symbol: u8) -> bool {
    (0..MAX_RANK).any(|axis| marks.get(axis) == Some(symbol))
}

/// The number of the next argument of its kind.
fn place(op: &CustomOp, index: usize) -> Result<u8> {
    u8::try_from(index).map_err(|_| Error::Argument {
        op: op.name(),
        why: "more than 256 arguments of one kind; pass them as one tensor".into(),
    })
}

impl<O> fmt::Debug for Call<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("op", &self.op.name())
            .field("arguments", &self.parts.arguments)
            .finish_non_exhaustive()
    }
}
