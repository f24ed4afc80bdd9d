//! Handles of values on the device.

pub(crate) mod broadcast;
pub(crate) mod contents;
pub(crate) mod context;
pub(crate) mod dim;
mod live_in;
pub(crate) mod live_out;
pub(crate) mod param;
pub(crate) mod persistent;
pub(crate) mod pinned;
pub(crate) mod pinned_log;
pub(crate) mod rng;
pub(crate) mod shape;
pub(crate) mod weight;

use std::{fmt, marker::PhantomData, ops::Deref};

use smallvec::SmallVec;

use crate::value::raw::RawTensor;
use crate::{
    AsWeight, DType, Dim, Element, Error, Numerics, Param, Result, Runtime, Shape, State,
    backend::{Op, View},
    base::rank::MAX_RANK,
    value::layout::{Layout, PaddedDims},
};

/// An immutable value on the device that is alive within one step.
///
/// Its elements can only be read by [`Step::read`](crate::Eager::read) and by the capability of an
/// `#[eager(cx)]` region, so a segment cannot depend on them. Cloning shares the memory; dropping the last
/// clone frees it.
///
/// It borrows the runtime: the next [`Runtime::step`] cannot start while a tensor of this step is alive.
///
/// # `error[E0106]: missing lifetime specifier`
///
/// A tensor has the lifetime of its step, `Tensor<'s, f32>`. [`#[graphable]`](macro@crate::graphable) adds
/// it; if the attribute is missing, rustc asks for the lifetime and suggests names that do not help. Put the
/// attribute on the function, `impl`, trait, struct or alias that the error is about, or once on the module
/// that contains them:
///
/// ```
/// # fn main() {}
/// use graphable::prelude::*;
///
/// #[graphable]
/// fn helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     ops::relu(x)
/// }
///
/// #[graphable]
/// mod model {
///     use graphable::prelude::*;
///
///     #[derive(Clone, GraphOutput)]
///     pub struct Cache {
///         pub last: Tensor<f32>,
///     }
///
///     pub fn cached(x: &Tensor<f32>, by: &Tensor<f32>) -> Result<Cache> {
///         Ok(Cache { last: ops::mul(x, by)? })
///     }
/// }
/// ```
///
/// Without the attribute, write `fn helper<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>>` and
/// `struct Cache<'s>`, and use it as `Cache<'_>`.
pub struct Tensor<'s, T> {
    pub(crate) rt: &'s Runtime,
    pub(crate) raw: RawTensor,
    _type: PhantomData<fn() -> T>,
}

impl<'s, T> Tensor<'s, T> {
    /// Takes over one reference to the slot.
    pub(crate) fn from_raw(rt: &'s Runtime, raw: RawTensor) -> Self {
        Self { rt, raw, _type: PhantomData }
    }

    /// Gives up the handle without releasing its reference.
    pub(crate) fn into_raw(self) -> RawTensor {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// Returns the sizes, outermost first.
    pub fn shape(&self) -> Shape<'s> {
        Shape::new(self.rt, &self.raw.layout, self.raw.marks)
    }

    /// Returns the size of one dimension; 1 beyond the rank. See [`Dim`] for how sizes of padded dimensions
    /// differ from numbers.
    pub fn dim(&self, axis: usize) -> Dim<'s> {
        match self.shape().get(axis) {
            Some(dim) => *dim,
            None => Dim::from(1),
        }
    }

    /// Returns the sizes in the call, which include padding.
    pub(crate) fn sizes(&self) -> &[usize] {
        self.raw.layout.shape()
    }

    /// Returns the size of one dimension in the call, which includes padding.
    pub(crate) fn size(&self, axis: usize) -> usize {
        self.sizes().get(axis).copied().unwrap_or(1)
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.raw.layout.rank()
    }

    /// Returns the number of elements. Like a size, it is not a number if a bucket pads a dimension.
    pub fn count(&self) -> Dim<'s> {
        let one = Dim { rt: Some(self.rt), ..Dim::from(1) };
        self.shape().into_iter().fold(one, |count, dim| count * dim)
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.raw.dtype
    }

    /// Returns the scope from which constructors get their runtime.
    pub fn scope(&self) -> Scope<'s> {
        Scope { rt: self.rt }
    }

    /// Returns whether both refer to the same memory with the same layout.
    ///
    /// Inside a segment, its recording depends on the answer: a call whose tensors overlap differently has a
    /// recording of its own. A padded device input of a bucketed call stands for the tensor that was passed.
    pub fn same_memory<U>(&self, other: &Tensor<'s, U>) -> bool {
        if !std::ptr::eq(self.rt, other.rt) {
            return false;
        }
        let core = self.rt.core.borrow();
        core.overlaps().same_place(&core.recorder, &self.raw, &other.raw)
    }

    /// Returns the view that the operation `op` reads.
    pub(crate) fn view(&self, op: &'static str) -> Result<View> {
        self.rt.check_live(op, &self.raw)?;
        Ok(self.raw.view())
    }

    /// Returns the same memory with a different layout, `offset` elements further on.
    pub(crate) fn alias(&self, layout: Layout, offset: usize, marks: PaddedDims) -> Self {
        let raw = RawTensor {
            addr: self.raw.addr + (offset * self.raw.dtype.size()) as u64,
            layout,
            marks,
            ..self.raw
        };
        self.rt.retain(raw.slot, raw.epoch);
        Self::from_raw(self.rt, raw)
    }
}

impl<T> Clone for Tensor<'_, T> {
    fn clone(&self) -> Self {
        self.rt.retain(self.raw.slot, self.raw.epoch);
        Self::from_raw(self.rt, self.raw)
    }
}

impl<T> Drop for Tensor<'_, T> {
    fn drop(&mut self) {
        self.rt.release(self.raw.slot, self.raw.epoch);
    }
}

impl<T> fmt::Debug for Tensor<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?}", self.raw.dtype, self.raw.layout)
    }
}

/// A single value on the device: a tensor of rank 0. As a `#[host]` parameter, it is refreshed on every call.
pub struct Scalar<'s, T>(pub(crate) Tensor<'s, T>);

impl<'s, T> Scalar<'s, T> {
    /// Returns the scalar as a tensor of rank 0.
    pub fn tensor(&self) -> &Tensor<'s, T> {
        &self.0
    }

    /// Converts a tensor of rank 0 to a scalar.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] for any other rank.
    pub fn from_tensor(tensor: Tensor<'s, T>) -> Result<Self> {
        if tensor.rank() != 0 {
            return Err(Error::shape("Scalar::from_tensor", &[tensor.sizes()], "a scalar has rank 0"));
        }
        Ok(Self(tensor))
    }
}

impl<T> Clone for Scalar<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'s, T> Deref for Scalar<'s, T> {
    type Target = Tensor<'s, T>;

    fn deref(&self) -> &Tensor<'s, T> {
        &self.0
    }
}

impl<T> fmt::Debug for Scalar<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scalar<{}>", self.0.raw.dtype)
    }
}

/// The source from which a constructor such as [`ops::full`](crate::ops::full) gets its runtime: `t.scope()`
/// or `step.scope()`. Does not provide access to values.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    pub(crate) rt: &'s Runtime,
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scope")
    }
}

impl<'s> Scope<'s> {
    /// Returns a parameter as a tensor, without a copy. [`Param::write`] refuses to change it while the tensor is
    /// alive.
    ///
    /// # Errors
    /// Returns [`Error::DifferentRuntimes`] for a parameter of another runtime.
    pub fn view<T: Element>(self, param: &Param<T>) -> Result<Tensor<'s, T>> {
        self.check("Scope::view", param.owned.runtime)?;
        let raw = self.rt.adopt(&param.owned, T::DTYPE, param.layout);
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// Allocates an uninitialised output of an operation.
    pub(crate) fn empty<T: Element>(
        self,
        op: &Op,
        shape: &[usize],
        marks: PaddedDims,
    ) -> Result<Tensor<'s, T>> {
        self.output(op.name(), shape, marks)
    }

    /// Allocates an uninitialised output of an operation of this name.
    pub(crate) fn output<T: Element>(
        self,
        producer: &'static str,
        shape: &[usize],
        marks: PaddedDims,
    ) -> Result<Tensor<'s, T>> {
        let layout = Layout::contiguous(shape)?;
        let raw = self.rt.allocate_output(producer, T::DTYPE, layout, marks)?;
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// Returns whether the device can run an operation.
    pub(crate) fn supports(self, op: &Op) -> Result<bool> {
        self.rt.supports(op)
    }

    /// Returns the switches of the numerics that apply here.
    pub(crate) fn numerics(self) -> Numerics {
        let core = self.rt.core.borrow();
        core.call.numerics_or(core.settings.numerics())
    }

    /// Launches one operation. Shapes and dtypes were checked by the caller.
    pub(crate) fn launch(self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.rt.launch(op, inputs, outputs)
    }

    /// Rejects memory of another runtime.
    pub(crate) fn check(self, op: &'static str, runtime: u64) -> Result<()> {
        if runtime == self.rt.id() { Ok(()) } else { Err(Error::DifferentRuntimes { op }) }
    }

    /// Rejects a padded axis.
    pub(crate) fn refuse_padded(self, op: &'static str, marks: PaddedDims, axis: usize) -> Result<()> {
        match marks.get(axis) {
            None => Ok(()),
            Some(symbol) => {
                Err(Error::PaddedMix { op, axis, symbol: self.rt.symbol_name(symbol), instead: None })
            }
        }
    }

    /// Returns [`Error::Shape`]. It lists the sizes in the call; for those that a bucket enlarged, it states
    /// the real sizes.
    pub(crate) fn shape_error(
        self,
        op: &'static str,
        shapes: &[Shown<'_>],
        reason: impl Into<String>,
    ) -> Error {
        let mut reason = reason.into();
        let core = self.rt.core.borrow();
        let mut reported: SmallVec<[u8; 4]> = SmallVec::new();
        for symbol in shapes.iter().flat_map(|Shown(_, marks)| (0..MAX_RANK).filter_map(|a| marks.get(a))) {
            if reported.contains(&symbol) {
                continue;
            }
            reported.push(symbol);
            if let Some((name, real, padded)) =
                core.call.padding_of(symbol).filter(|(_, real, padded)| real != padded)
            {
                reason += &format!("; the size along {name} is {real}, padded to a bucket of {padded}");
            }
        }
        let shapes: Vec<&[usize]> = shapes.iter().map(|shown| shown.0).collect();
        Error::shape(op, &shapes, reason)
    }

    /// Returns the number of real rows along a padded axis, on the device.
    pub(crate) fn real_count(self, symbol: u8) -> Option<View> {
        self.rt.symbol_count(symbol)
    }
}

/// The sizes that an error shows, and which of them are padded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown<'a>(pub(crate) &'a [usize], pub(crate) PaddedDims);

impl<'a> From<&'a [usize]> for Shown<'a> {
    fn from(sizes: &'a [usize]) -> Self {
        Self(sizes, PaddedDims::NONE)
    }
}

impl<'a> From<&'a Operand> for Shown<'a> {
    fn from(operand: &'a Operand) -> Self {
        Self(operand.view.layout.shape(), operand.marks)
    }
}

impl<'a, T> From<&'a Tensor<'_, T>> for Shown<'a> {
    fn from(tensor: &'a Tensor<'_, T>) -> Self {
        Self(tensor.sizes(), tensor.raw.marks)
    }
}

/// The input of an operation: memory, layout and padding of one argument.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub(crate) view: View,
    pub(crate) marks: PaddedDims,
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// An argument of an operation: a tensor, a scalar, a parameter or state with elements `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand with elements `{T}`",
    label = "expected a tensor, scalar, parameter or state of `{T}`",
    note = "cast other element types with `ops::cast`; host values become tensors with `ops::full`"
)]
pub trait AsOperand<'s, T>: AsWeight<'s, T> {
    /// Used by the operations.
    #[doc(hidden)]
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand>;

    /// Returns whether operations may write it.
    #[doc(hidden)]
    fn is_state(&self) -> bool {
        false
    }
}

impl<T> sealed::Sealed for Tensor<'_, T> {}
impl<'s, T: Element> AsOperand<'s, T> for Tensor<'s, T> {
    #[inline]
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        if !std::ptr::eq(self.rt, scope.rt) {
            return Err(Error::DifferentRuntimes { op });
        }
        self.rt.check_live(op, &self.raw)?;
        Ok(Operand { view: self.raw.view(), marks: self.raw.marks })
    }
}

impl<T> sealed::Sealed for Scalar<'_, T> {}
impl<'s, T: Element> AsOperand<'s, T> for Scalar<'s, T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        self.0.operand(op, scope)
    }
}

impl<T> sealed::Sealed for Param<T> {}
impl<'s, T: Element> AsOperand<'s, T> for Param<T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        scope.check(op, self.owned.runtime)?;
        Ok(Operand { view: self.view(), marks: PaddedDims::NONE })
    }
}

impl<T> sealed::Sealed for State<T> {}
impl<'s, T: Element> AsOperand<'s, T> for State<T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        scope.check(op, self.owned.runtime)?;
        Ok(Operand { view: self.view(), marks: PaddedDims::NONE })
    }

    fn is_state(&self) -> bool {
        true
    }
}

impl<T: sealed::Sealed + ?Sized> sealed::Sealed for &T {}
impl<'s, T, O: AsOperand<'s, T> + ?Sized> AsOperand<'s, T> for &O {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        (**self).operand(op, scope)
    }

    fn is_state(&self) -> bool {
        (**self).is_state()
    }
}
