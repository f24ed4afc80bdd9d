//! The interface for users' code on the CPU.

use std::{cell::RefCell, fmt};

use super::{
    argument::{Argument, ScalarArgument},
    operation::CustomOperation,
};
use crate::{
    Element,
    backend::{Launch, Operation as _, View, cpu::Access, shapes::Shapes},
};

/// The reason why an operation failed on the CPU: any text or error.
///
/// The next read reports it as [`Error::OperationFailed`](crate::Error::OperationFailed), and the runtime
/// remains usable.
pub struct CpuFailure(pub(crate) String);

impl<E: fmt::Display> From<E> for CpuFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for CpuFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The operands of a launch on the CPU, as slices.
///
/// Operands are counted by kind, in the order in which the call named them: inputs (and views), outputs, states, scalars
/// (and sizes), real sizes.
pub struct CpuCall<'a> {
    access: &'a Access<'a>,
    launch: &'a Launch,
    op: &'a CustomOperation,
    /// Places in `launch.outputs` that were given out.
    taken: RefCell<Vec<usize>>,
}

impl<'a> CpuCall<'a> {
    pub(super) fn new(access: &'a Access<'a>, launch: &'a Launch, op: &'a CustomOperation) -> Self {
        Self { access, launch, op, taken: RefCell::default() }
    }

    /// Returns the sizes of the operands; those of padded dimensions are the bucket's.
    pub fn shapes(&self) -> Shapes<'a> {
        self.op.shapes(&self.launch.inputs, &self.launch.outputs)
    }

    /// Returns the elements of an input, from the first one on: row-major, or according to
    /// [`strides`](Self::strides) if the call passed a view. Elements of type `bool` are `u8`.
    ///
    /// # Errors
    /// Returns an error if there is no such input, or if its elements have another type.
    pub fn input<T: Element>(&self, index: usize) -> Result<&'a [T::Repr], CpuFailure> {
        let view = self.operand(index)?;
        of_type::<T>("input", index, view)?;
        Ok(self.access.slice::<T::Repr>(view))
    }

    /// Returns the strides of an input, in elements.
    ///
    /// # Errors
    /// Returns an error if there is no such input.
    pub fn strides(&self, index: usize) -> Result<&'a [usize], CpuFailure> {
        Ok(self.operand(index)?.layout.strides())
    }

    /// Returns the elements of an output, row-major, to write. They hold anything.
    ///
    /// # Errors
    /// Returns an error if there is no such output, if its elements have another type, or if it was taken before.
    pub fn output<T: Element>(&self, index: usize) -> Result<&'a mut [T::Repr], CpuFailure> {
        if index >= self.op.made() {
            return Err(CpuFailure(format!("there is no output {index}")));
        }
        self.take::<T>("output", index, index)
    }

    /// Returns the elements of a state, row-major, to read and write.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn state<T: Element>(&self, index: usize) -> Result<&'a mut [T::Repr], CpuFailure> {
        self.take::<T>("state", index, self.op.made().saturating_add(index))
    }

    /// Returns a scalar, or a size or count, which is a `u64`.
    ///
    /// # Errors
    /// Returns an error if there is no such scalar, or if it has another type.
    pub fn scalar<T: ScalarArgument>(&self, index: usize) -> Result<T, CpuFailure> {
        let mut values = self.op.arguments().iter().filter_map(|argument| match argument {
            Argument::Value { bytes, of } => Some((*bytes, *of)),
            _ => None,
        });
        match values.nth(index) {
            Some((bytes, of)) if of == T::TYPE => Ok(bytemuck::pod_read_unaligned(&bytes[..of.bytes()])),
            Some((_, of)) => {
                Err(CpuFailure(format!("scalar {index} has type {}, not {}", of.name(), T::TYPE.name())))
            }
            None => Err(CpuFailure(format!("there is no scalar {index}"))),
        }
    }

    /// Returns the real size of a dimension that the call named with `real_size`; `None` if it is not padded.
    ///
    /// # Errors
    /// Returns an error if the call named fewer.
    pub fn real_size(&self, index: usize) -> Result<Option<usize>, CpuFailure> {
        let mut named = self.op.arguments().iter().filter_map(|argument| match argument {
            Argument::RealSize(count) => Some(*count),
            _ => None,
        });
        let Some(count) = named.nth(index) else {
            return Err(CpuFailure(format!("there is no real size {index}")));
        };
        let view = count.and_then(|count| self.launch.inputs.get(self.op.operands() + usize::from(count)));
        Ok(view.and_then(|view| self.access.slice::<u32>(view).first()).map(|&n| n as usize))
    }

    fn operand(&self, index: usize) -> Result<&'a View, CpuFailure> {
        let operands = &self.launch.inputs[..self.op.operands()];
        operands.get(index).ok_or_else(|| CpuFailure(format!("there is no input {index}")))
    }

    fn take<T: Element>(
        &self,
        what: &str,
        index: usize,
        place: usize,
    ) -> Result<&'a mut [T::Repr], CpuFailure> {
        let Some(view) = self.launch.outputs.get(place) else {
            return Err(CpuFailure(format!("there is no {what} {index}")));
        };
        of_type::<T>(what, index, view)?;
        let mut taken = self.taken.borrow_mut();
        if taken.contains(&place) {
            return Err(CpuFailure(format!("{what} {index} was taken before; take it once")));
        }
        taken.push(place);
        Ok(self.access.slice_mut::<T::Repr>(view))
    }
}

fn of_type<T: Element>(what: &str, index: usize, view: &View) -> Result<(), CpuFailure> {
    if view.dtype == T::DTYPE {
        return Ok(());
    }
    Err(CpuFailure(format!("{what} {index} has elements of type {}, not {}", view.dtype, T::DTYPE)))
}

impl fmt::Debug for CpuCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuCall").field("op", &self.op.name()).finish_non_exhaustive()
    }
}
