//! A launch of a custom operation: its arguments, checks, and outputs.

use std::{fmt, marker::PhantomData, ops::Deref};

use smallvec::SmallVec;

use super::{
    CustomOp,
    argument::{Argument, ScalarArgument},
    parts::{Lists, Parts},
};
use crate::{
    AsOperand, Element, Error, IntoDim, IntoShape, Result, Scope, State, Tensor,
    base::rank::MAX_RANK,
    tensor::{Operand, Shown},
    value::layout::PaddedDims,
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
    op: Held<'c>,
    scope: Scope<'s>,
    parts: Parts,
    /// The outputs; none after a mistake.
    made: Option<O>,
    /// The operands, which are borrowed until it is run.
    operands: PhantomData<&'c ()>,
}

/// The operation of a launch.
pub(super) enum Held<'c> {
    Borrowed(&'c CustomOp),
    /// One that was made for the launch.
    Owned(CustomOp),
}

impl Deref for Held<'_> {
    type Target = CustomOp;

    #[inline]
    fn deref(&self) -> &CustomOp {
        match self {
            Self::Borrowed(op) => op,
            Self::Owned(op) => op,
        }
    }
}

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
    #[inline]
    pub(super) fn new(op: Held<'c>, scope: Scope<'s>) -> Self {
        Self { op, scope, parts: Parts::new(), made: Some(()), operands: PhantomData }
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
                let reason = "an input is strided, and the kernel reads rows end to end; pass `ops::contiguous(&x)?`, or a view";
                return Err(call.scope.shape_error(call.op.name(), &[(&operand).into()], reason));
            }
            let index = call.add_input(&operand)?;
            call.parts.lists().arguments.push(Argument::Input(index));
            Ok(())
        })
    }

    /// Passes an operand with any strides: a `graphable_view` of `graphable.cuh`, by value.
    pub fn view<T: Element>(self, x: &'c (impl AsOperand<'s, T> + ?Sized)) -> Self {
        self.checked(|call| {
            let operand = x.operand(call.op.name(), call.scope)?;
            let index = call.add_input(&operand)?;
            call.parts.lists().arguments.push(Argument::View(index));
            Ok(())
        })
    }

    /// Passes state that the operation reads and writes in place: a pointer to its first element. A launch that writes state
    /// may have padded inputs only along dimensions whose [real size](Self::real_size) it passes. [`run`](Self::run) returns
    /// [`Error::Argument`] if the state is an input, too, or is passed twice.
    pub fn state<T: Element>(self, state: &'c State<T>) -> Self {
        self.checked(|call| {
            let view = state.operand(call.op.name(), call.scope)?.view;
            let lists = call.parts.lists();
            lists.arguments.push(Argument::State(place(&call.op, lists.states.len())?));
            lists.states.push(view);
            Ok(())
        })
    }

    /// Passes a host value, which becomes a constant of a recording. One that changes between calls is a `#[host]` scalar,
    /// passed as an [`input`](Self::input).
    pub fn scalar(self, value: impl ScalarArgument) -> Self {
        self.checked(|call| {
            call.parts.lists().arguments.push(Argument::value(value));
            Ok(())
        })
    }

    /// Passes the size of a dimension as a `u64`: `x.dim(0)`, or a number. For a padded dimension, it is the
    /// bucket's.
    pub fn size(self, dim: impl IntoDim<'s>) -> Self {
        let dim = dim.into_dim();
        self.checked(|call| {
            let size = call.scope.resolve_dim(call.op.name(), dim)?.size;
            call.parts.lists().arguments.push(Argument::value(size as u64));
            Ok(())
        })
    }

    /// Passes the number of elements of an operand as a `u64`, with the rows of the padding.
    pub fn count<T: Element>(self, x: &(impl AsOperand<'s, T> + ?Sized)) -> Self {
        self.checked(|call| {
            let count = x.operand(call.op.name(), call.scope)?.view.layout.count();
            call.parts.lists().arguments.push(Argument::value(count as u64));
            Ok(())
        })
    }

    /// Passes the real size of a dimension, `x.dim(0)`: a pointer to a `u32` on the device, or null if the dimension is not
    /// padded. The operation must not read beyond that size in any input that is padded alike.
    pub fn real_size(self, dim: impl IntoDim<'s>) -> Self {
        let dim = dim.into_dim();
        self.checked(|call| {
            let symbol = call.scope.resolve_dim(call.op.name(), dim)?.symbol;
            let count = symbol.and_then(|symbol| call.scope.real_count(symbol));
            let lists = call.parts.lists();
            let index = match count {
                None => None,
                Some(_) => Some(place(&call.op, lists.real_sizes.len())?),
            };
            lists.arguments.push(Argument::RealSize(index));
            lists.real_sizes.extend(count);
            lists.counted.extend(symbol);
            Ok(())
        })
    }

    /// Passes the address of the workspace of a kernel.
    pub fn workspace(self) -> Self {
        self.checked(|call| {
            call.parts.lists().arguments.push(Argument::Workspace);
            Ok(())
        })
    }

    /// Makes an output of this shape and passes a pointer to its first element. Sizes of padded dimensions are passed as they
    /// are, `x.shape()` or `(x.dim(0), 4)`: the output is padded alike.
    pub fn output<T: Element>(self, shape: impl IntoShape<'s>) -> Call<'c, 's, O::All>
    where
        O: AndOutput<Tensor<'s, T>>,
    {
        self.with_output(|call| {
            let given = call.scope.resolve(call.op.name(), shape.into_sizes())?;
            call.push_output(&given.sizes, given.marks)
        })
    }

    /// Makes an output with the shape and the padding of an operand, as [`output`](Self::output) of `x.shape()` does, in less
    /// time.
    ///
    /// ```
    /// # use graphable::{custom::CustomOp, prelude::*};
    /// # let op = CustomOp::builder("halves").cpu(|call| Ok(call.output::<f32>(0)?.fill(0.5))).build();
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// # let x = step.tensor(&[2], &[1u32, 2])?;
    /// let y: Tensor<f32> = op.call(x.scope()).input(&x).output_like(&x).run()?;
    /// assert_eq!(step.read(&y)?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn output_like<T: Element, U: Element>(
        self,
        x: &(impl AsOperand<'s, U> + ?Sized),
    ) -> Call<'c, 's, O::All>
    where
        O: AndOutput<Tensor<'s, T>>,
    {
        self.with_output(|call| {
            let operand = x.operand(call.op.name(), call.scope)?;
            call.push_output(operand.view.layout.shape(), operand.marks)
        })
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
    pub fn require(self, fits: bool, reason: &str) -> Self {
        self.checked(|call| {
            if fits {
                return Ok(());
            }
            let lists = call.parts.lists();
            let inputs = lists.inputs.iter().zip(&lists.input_marks);
            let shown: SmallVec<[Shown<'_>; 4]> =
                inputs.map(|(view, marks)| Shown(view.layout.shape(), *marks)).collect();
            Err(call.scope.shape_error(call.op.name(), &shown, reason))
        })
    }

    /// Launches, and returns the outputs. It is asynchronous.
    ///
    /// # Errors
    /// The first mistake in the arguments; [`Error::Argument`] for [state](Self::state) that is another operand, too;
    /// [`Error::PaddedMix`]; [`Error::NotCapturable`]; [`Error::NoCode`]; [`Error::Compile`]; the errors of every operation
    /// (see [`ops`](crate::ops)).
    pub fn run(mut self) -> Result<O> {
        let Some(made) = self.made.take() else {
            let name = self.op.name();
            return Err(self.parts.lists().mistake.take().unwrap_or(Error::NeverComputed { op: name }));
        };
        let lists = self.parts.lists();
        if lists.is_padded {
            check_padding(self.scope, &self.op, lists)?;
        }
        let Lists { arguments, inputs, outputs, states, real_sizes, .. } = lists;
        if !states.is_empty() {
            outputs.append(states);
        }
        if outputs.iter().all(|view| view.layout.count() == 0) {
            // Nothing is written; devices refuse empty grids.
            return Ok(made);
        }
        if !real_sizes.is_empty() {
            inputs.append(real_sizes);
        }
        self.scope.launch(self.op.0.launch(arguments), inputs, outputs)?;
        Ok(made)
    }

    /// Adds an argument, unless there was a mistake before.
    #[inline]
    fn checked(mut self, add: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        if self.made.is_some()
            && let Err(mistake) = add(&mut self)
        {
            self.parts.lists().mistake = Some(mistake);
            self.made = None;
        }
        self
    }

    #[inline]
    fn add_input(&mut self, operand: &Operand) -> Result<u8> {
        let lists = self.parts.lists();
        let index = place(&self.op, lists.inputs.len())?;
        lists.inputs.push(operand.view);
        lists.input_marks.push(operand.marks);
        lists.is_padded |= operand.marks.any();
        Ok(index)
    }

    /// Adds an output, unless there was a mistake before.
    #[inline]
    fn with_output<T>(mut self, add: impl FnOnce(&mut Self) -> Result<Tensor<'s, T>>) -> Call<'c, 's, O::All>
    where
        O: AndOutput<Tensor<'s, T>>,
    {
        let made = match self.made.take() {
            None => None,
            // Not by a closure, into and out of which the tensors would be copied.
            Some(made) => match add(&mut self) {
                Ok(out) => Some(made.and(out)),
                Err(mistake) => {
                    self.parts.lists().mistake = Some(mistake);
                    None
                }
            },
        };
        Call { op: self.op, scope: self.scope, parts: self.parts, made, operands: PhantomData }
    }

    #[inline]
    fn push_output<T: Element>(&mut self, shape: &[usize], marks: PaddedDims) -> Result<Tensor<'s, T>> {
        let name = self.op.name();
        let lists = self.parts.lists();
        let index = place(&self.op, lists.outputs.len())?;
        let out = self.scope.output::<T>(name, shape, marks)?;
        lists.outputs.push(out.raw.view());
        lists.output_marks.push(marks);
        lists.arguments.push(Argument::Output(index));
        Ok(out)
    }
}

/// Refuses padded inputs where their padding could become part of real values.
fn check_padding(scope: Scope<'_>, op: &CustomOp, lists: &Lists) -> Result<()> {
    let keeps = op.0.keeps_padding && lists.states.is_empty();
    for marks in lists.input_marks.iter().filter(|marks| marks.any()) {
        for axis in 0..MAX_RANK {
            let Some(symbol) = marks.get(axis).filter(|symbol| !lists.counted.contains(symbol)) else {
                continue;
            };
            let kept = keeps && lists.output_marks.iter().all(|output| has(*output, symbol));
            if !kept {
                scope.refuse_padded(op.name(), *marks, axis)?;
            }
        }
    }
    Ok(())
}

fn has(marks: PaddedDims, symbol: u8) -> bool {
    (0..MAX_RANK).any(|axis| marks.get(axis) == Some(symbol))
}

/// The number of the next argument of its kind.
fn place(op: &CustomOp, index: usize) -> Result<u8> {
    u8::try_from(index).map_err(|_| Error::Argument {
        op: op.name(),
        reason: "more than 256 arguments of one kind; pass them as one tensor".into(),
    })
}

impl<O> fmt::Debug for Call<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("op", &self.op.name())
            .field("arguments", &self.parts.arguments())
            .finish_non_exhaustive()
    }
}
