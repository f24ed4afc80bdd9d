//! Custom operations in the place of launches of a recording.

use super::{
    CustomOp,
    argument::{Argument, ScalarArgument},
};
use crate::{
    Element,
    observe::inspect::PassRefusal,
    program::users::{NewLaunch, Operands, TensorRef},
};

/// A launch of a [`CustomOp`] that a [pass](crate::passes::Pass) wants in the place of others. Its arguments are named in the order of
/// the parameters of its kernel, as in a [`Call`](super::Call).
///
/// The first mistake is kept, and refused by [`Program::replace`](crate::passes::Program::replace).
#[derive(Clone, Debug)]
#[must_use = "`Program::replace` takes it"]
pub struct CustomReplacement {
    op: CustomOp,
    arguments: Vec<Argument>,
    operands: Operands,
}

impl CustomOp {
    /// Starts a launch that a [pass](crate::passes::Pass) wants in the place of others.
    pub fn replacement(&self) -> CustomReplacement {
        CustomReplacement { op: self.clone(), arguments: Vec::new(), operands: Operands::default() }
    }
}

impl CustomReplacement {
    /// Passes the elements of an input, row-major: a pointer to the first. Refused if it is strided, or has elements of another
    /// type.
    pub fn input<T: Element>(mut self, tensor: TensorRef) -> Self {
        if !tensor.is_contiguous() {
            self.operands.refuse(PassRefusal::Strided);
        }
        let index = self.operands.input(tensor, T::DTYPE);
        self.with(Argument::Input(index))
    }

    /// Passes an input with any strides: a `graphable_view` of `graphable.cuh`, by value. Refused if it has elements of another
    /// type.
    pub fn view<T: Element>(mut self, tensor: TensorRef) -> Self {
        let index = self.operands.input(tensor, T::DTYPE);
        self.with(Argument::View(index))
    }

    /// Passes a host value, which becomes a constant of the recording.
    pub fn scalar(self, value: impl ScalarArgument) -> Self {
        self.with(Argument::value(value))
    }

    /// Passes a size as a `u64`.
    pub fn size(self, size: usize) -> Self {
        self.scalar(size as u64)
    }

    /// Passes the address of the workspace of a kernel. The new launch uses the workspace of the launch that it replaces. If that
    /// is too small, the replacement is refused.
    pub fn workspace(self) -> Self {
        self.with(Argument::Workspace)
    }

    /// Passes an output: a pointer to its first element. An output with elements of another type is refused.
    pub fn output<T: Element>(mut self, tensor: TensorRef) -> Self {
        let index = self.operands.output(tensor, T::DTYPE);
        self.with(Argument::Output(index))
    }

    fn with(mut self, argument: Argument) -> Self {
        self.arguments.push(argument);
        self
    }
}

impl From<CustomReplacement> for NewLaunch {
    fn from(by: CustomReplacement) -> Self {
        let CustomReplacement { op, arguments, operands } = by;
        operands.launch(op.name(), || op.0.launch(&arguments))
    }
}
