//! From the arguments of an operation to its launch.

use smallvec::SmallVec;

use super::{
    definition::{Compute, Constant, Definition, Number, Padded},
    operation::{Further, operation},
    random::{advance::advance_by, draws::Draws},
};
use crate::{
    AsOperand, DType, Element, Error, Float, IntoShape, Operand, Result, Rng, Scope, Tensor,
    backend::{Op, View},
    base::rank::MAX_RANK,
    bf16, f16,
    tensor::{
        Shown,
        broadcast::{broadcast, spread},
    },
    value::layout::PaddedDims,
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
    /// A random number for each element, from the generator in this memory.
    Random(View),
}

/// An argument of an element-wise operation after the first: a reference to a tensor, a scalar, a parameter or state
/// with elements `T`, or a number.
///
/// A number becomes a constant of the recording; for tensors of `f16` and `bf16` it is an `f32`, which comparisons and
/// selections round to the type of the elements. One that changes from call to call is a `#[host]` scalar, or a `#[key]`,
/// which has a recording for each value.
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
    #[inline]
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

numbers!(f64 i32 i64 i8 u32 u8 bool);

impl<'s> Call<'s> {
    /// Creates a call whose first argument is a tensor, which determines the step.
    ///
    /// # Errors
    /// Returns the errors of the tensor, for example if its step has ended.
    #[inline]
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

    /// Adds the next argument.
    ///
    /// # Errors
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes).
    pub fn argument<T>(&mut self, argument: impl Argument<'s, T>) -> Result<()> {
        argument.give(self)
    }

    /// Adds the next argument, which is a number.
    pub fn key(&mut self, value: impl Constant) {
        self.arguments.push(Given::Constant(value.number()));
    }

    /// Adds the next argument, which is a number, in the type that elements `T` are computed in.
    pub(crate) fn number<T: Element>(&mut self, value: f64) {
        match T::DTYPE {
            DType::F32 | DType::F16 | DType::Bf16 => self.key(value as f32),
            DType::F64 => self.key(value),
            DType::I32 => self.key(i32::from_f64(value)),
            DType::I64 => self.key(i64::from_f64(value)),
            DType::I8 => self.key(i8::from_f64(value)),
            DType::U32 => self.key(u32::from_f64(value)),
            // A `bool` is its byte.
            DType::U8 | DType::Bool => self.key(u8::from_f64(value)),
        }
    }

    /// Adds the next argument, which is a random number for each element.
    ///
    /// # Errors
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes).
    pub fn random(&mut self, rng: &Rng) -> Result<()> {
        let state = rng.operand(self.definition.name, self.scope)?;
        self.arguments.push(Given::Random(state));
        Ok(())
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
            let value = f32::from_bits(*bits as u32);
            (*compute, *bits) = match T::DTYPE {
                DType::F16 => (Compute::U16, u64::from(f16::from_f32(value).to_bits())),
                DType::Bf16 => (Compute::U16, u64::from(bf16::from_f32(value).to_bits())),
                DType::F64 | DType::I64 => (Compute::I64, *bits),
                DType::F32 | DType::I32 | DType::U32 => (Compute::U32, *bits),
                DType::I8 | DType::U8 | DType::Bool => (Compute::U8, *bits),
            };
        }
        self
    }

    /// Numbers as those that elements `T` can be, for a kernel that compares them.
    pub(crate) fn rounded<T: Element>(mut self) -> Self {
        for given in &mut self.arguments {
            let Given::Constant(Number { bits, .. }) = given else { continue };
            let value = f32::from_bits(*bits as u32);
            *bits = match T::DTYPE {
                DType::F16 => f16::from_f32(value).to_f32().to_bits().into(),
                DType::Bf16 => bf16::from_f32(value).to_f32().to_bits().into(),
                _ => *bits,
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
        let mut inputs: SmallVec<[View; 4]> = SmallVec::new();
        if let Some(first) = self.alike(&mut inputs) {
            let op = Op::fixed(self.definition);
            return self.run(op, &inputs, first.view.layout.shape(), first.marks);
        }
        inputs.clear();
        let name = self.definition.name;
        let (shape, marks) = broadcast(name, self.scope, &self.shown())?;
        for (_, operand) in self.operands() {
            inputs.push(spread(name, operand.view, &shape)?);
        }
        self.launch_with(&mut inputs, &shape, marks)
    }

    /// Adds the arguments to `inputs` and returns the first one, if all are tensors of one shape and padding, as in most calls:
    /// then nothing is broadcast, and the operation is the kernel itself. Otherwise, some may have been added.
    #[inline]
    fn alike(&self, inputs: &mut SmallVec<[View; 4]>) -> Option<&Operand> {
        let Some(Given::Tensor(first)) = self.arguments.first() else { return None };
        for given in &self.arguments {
            let Given::Tensor(operand) = given else { return None };
            if operand.marks != first.marks || !operand.view.layout.has_shape_of(&first.view.layout) {
                return None;
            }
            inputs.push(operand.view);
        }
        Some(first)
    }

    /// Allocates outputs of this shape and launches, if no argument is a tensor.
    ///
    /// # Errors
    /// Returns the errors of the shape, as [`ops::full`](crate::ops::full).
    pub fn launch_shaped<R: Results<'s>>(&self, shape: impl IntoShape<'s>) -> Result<R> {
        let given = self.scope.resolve(self.definition.name, shape.into_sizes())?;
        self.launch_with(&mut SmallVec::new(), &given.sizes, given.marks)
    }

    /// With these tensors, which have the shape of the results.
    fn launch_with<R: Results<'s>>(
        &self,
        inputs: &mut SmallVec<[View; 4]>,
        shape: &[usize],
        marks: PaddedDims,
    ) -> Result<R> {
        let op = match self.generators().next() {
            None => self.operation(Padded::default()),
            Some(_) => self.operation(self.draws(marks, inputs)),
        };
        let results = self.run(op, inputs, shape, marks)?;
        self.advance()?;
        Ok(results)
    }

    /// Allocates the outputs and launches the operation.
    fn run<R: Results<'s>>(&self, op: Op, inputs: &[View], shape: &[usize], marks: PaddedDims) -> Result<R> {
        let results = R::allocate(self.scope, &op, &|_| (shape, marks))?;
        // Devices refuse empty grids.
        if !shape.contains(&0) {
            self.scope.launch(op, inputs, &results.views())?;
        }
        Ok(results)
    }

    /// Refuses floats of several types, which kernels of rows and indices read as those of one.
    ///
    /// # Errors
    /// Returns [`Error::DTypeMismatch`].
    pub(super) fn refuse_mixed(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let mut floats =
            inputs.iter().chain(outputs).map(|view| view.dtype).filter(|dtype| dtype.is_computed_in_f32());
        let Some(expected) = floats.next() else { return Ok(()) };
        let Some(found) = floats.find(|dtype| *dtype != expected) else { return Ok(()) };
        let what = format!(
            "one of the arguments and results of `{}`, whose floats have one type,",
            self.definition.name
        );
        Err(Error::DTypeMismatch { what, expected, found })
    }

    /// Refuses a last argument with more dimensions than the rows of the first one have: broadcasting would make more rows
    /// of these. Of a single row without dimensions, it may.
    ///
    /// # Errors
    /// Returns [`Error::Shape`](crate::Error::Shape).
    pub(crate) fn refuse_more_dimensions(&self) -> Result<()> {
        let mut operands = self.operands().map(|(_, operand)| operand);
        let (Some(first), Some(last)) = (operands.next(), operands.last()) else { return Ok(()) };
        let rank = first.view.layout.rank();
        if rank <= 1 || last.view.layout.rank() < rank {
            return Ok(());
        }
        let reason = "a parameter has a value for each row, so the dimensions of the first tensor without the last one";
        Err(self.scope.shape_error(self.definition.name, &[first.into(), last.into()], reason))
    }

    /// The memory of the generator of each argument that is a random number.
    pub(super) fn generators(&self) -> impl Iterator<Item = View> {
        self.arguments.iter().filter_map(|given| match given {
            Given::Random(state) => Some(*state),
            Given::Tensor(_) | Given::Constant(_) => None,
        })
    }

    /// Adds the generators to the inputs, and the real sizes on which the place of an element depends.
    fn draws(&self, marks: PaddedDims, inputs: &mut SmallVec<[View; 4]>) -> Draws {
        inputs.extend(self.generators());
        let mut draws = Draws { ahead: self.ahead(), padded: Padded::default() };
        for axis in 1..MAX_RANK {
            if let Some(count) = marks.get(axis).and_then(|symbol| self.scope.real_count(symbol)) {
                inputs.push(count);
                draws.padded = draws.padded.with(axis);
            }
        }
        draws
    }

    /// Returns, for each argument that is a random number, how many before it draw from the same generator.
    ///
    /// With several, that depends on which of them are one, which the key says.
    pub(super) fn ahead(&self) -> SmallVec<[u32; 2]> {
        let ahead = self.generators().enumerate().map(|(i, state)| {
            let before = self.generators().take(i).filter(|other| other.addr == state.addr);
            before.count() as u32
        });
        ahead.collect()
    }

    /// Counts the calls of this launch, one for each argument that is a random number.
    pub(super) fn advance(&self) -> Result<()> {
        for (i, state) in self.generators().enumerate() {
            let is_same = |other: &View| other.addr == state.addr;
            if !self.generators().take(i).any(|other| is_same(&other)) {
                advance_by(self.scope, state, self.generators().filter(is_same).count() as u32)?;
            }
        }
        Ok(())
    }

    /// The tensors among the arguments, each with the number of its parameter.
    pub(crate) fn operands(&self) -> impl Iterator<Item = (usize, &Operand)> {
        self.arguments.iter().enumerate().filter_map(|(i, given)| match given {
            Given::Tensor(operand) => Some((i, operand)),
            Given::Constant(_) | Given::Random(_) => None,
        })
    }

    /// The sizes and the padding of the tensors among the arguments.
    pub(crate) fn shown(&self) -> SmallVec<[Shown<'_>; 4]> {
        self.operands().map(|(_, operand)| operand.into()).collect()
    }

    pub(super) fn operation(&self, further: impl Further) -> Op {
        operation(self.definition, self.arguments.iter().map(Given::constant), further)
    }
}

impl Given {
    fn constant(&self) -> Option<Number> {
        match self {
            Self::Tensor(_) | Self::Random(_) => None,
            Self::Constant(number) => Some(*number),
        }
    }
}

/// The result of an operation: a tensor, or a tuple of tensors.
pub trait Results<'s>: Sized {
    /// Tensors to be written, each of its shape and marks.
    #[doc(hidden)]
    fn allocate<'a>(
        scope: Scope<'s>,
        op: &Op,
        of: &dyn Fn(usize) -> (&'a [usize], PaddedDims),
    ) -> Result<Self>;

    /// Returns their memory.
    #[doc(hidden)]
    fn views(&self) -> SmallVec<[View; 1]>;
}

impl<'s, T: Element> Results<'s> for Tensor<'s, T> {
    fn allocate<'a>(
        scope: Scope<'s>,
        op: &Op,
        of: &dyn Fn(usize) -> (&'a [usize], PaddedDims),
    ) -> Result<Self> {
        let (shape, marks) = of(0);
        scope.empty(op, shape, marks)
    }

    fn views(&self) -> SmallVec<[View; 1]> {
        SmallVec::from_buf([self.raw.view()])
    }
}

macro_rules! several {
    ($($($t:ident $at:tt),*;)*) => {$(
        impl<'s, $($t: Element),*> Results<'s> for ($(Tensor<'s, $t>,)*) {
            fn allocate<'a>(
                scope: Scope<'s>,
                op: &Op,
                of: &dyn Fn(usize) -> (&'a [usize], PaddedDims),
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

#[cfg(test)]
mod tests {
    use crate::{Device, Error, Result, Runtime, Tensor, bf16, kernel, kernel::definition::Kernel as _};

    use super::Call;

    #[kernel(rows)]
    fn scaled(x: Row<f32>, by: f32) -> Row<f32> {
        x.map(|v| v * by)
    }

    #[kernel(index)]
    fn shifted(x: View<f32, 1>, by: f32, [i]: [i32; 1]) -> f32 {
        x.at([i]) + by
    }

    fn is_mixed<T>(result: Result<T>, name: &str) {
        let error = result.err().unwrap();
        assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }

    /// A GPU would read one type as the other.
    #[test]
    fn kernels_of_rows_and_indices_have_floats_of_one_type() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        let by = step.tensor(&[], &[bf16::from_f32(2.0)]).unwrap();
        let mut call = Call::new(scaled::DEFINITION, &x).unwrap();
        call.argument::<bf16>(&by).unwrap();
        is_mixed(call.launch_rows::<Tensor<'_, f32>>(), "`scaled`");
        let mut call = Call::new(shifted::DEFINITION, &x).unwrap();
        call.argument::<bf16>(&by).unwrap();
        is_mixed(call.launch_indexed::<Tensor<'_, f32>>([2]), "`shifted`");
        // Results as well.
        let mut call = Call::new(scaled::DEFINITION, &x).unwrap();
        call.key(3.0f32);
        is_mixed(call.launch_rows::<Tensor<'_, bf16>>(), "`scaled`");
        let y: Tensor<'_, f32> = call.launch_rows().unwrap();
        assert_eq!(step.read(&y).unwrap(), [3.0, 6.0]);
    }
}
