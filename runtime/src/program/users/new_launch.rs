//! A launch that a pass of a user wants.

use std::fmt;

use super::TensorRef;
use crate::{DType, backend::Op, observe::inspect::PassRefusal};

/// A launch of an operation of yours, with its operands: what [`Program::replace`](super::Program::replace) takes. It is made of a
/// [`CustomOp::replacement`](crate::custom::CustomOp::replacement) or a [`kernel`](crate::passes::kernel).
pub struct NewLaunch {
    name: &'static str,
    /// The operation, or what is wrong with its operands.
    op: Result<Op, PassRefusal>,
    inputs: Vec<TensorRef>,
    outputs: Vec<TensorRef>,
}

impl NewLaunch {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The operation.
    ///
    /// # Errors
    /// Returns what is wrong with its operands.
    pub(super) fn op(&self) -> Result<&Op, PassRefusal> {
        self.op.as_ref().map_err(|reason| *reason)
    }

    pub(super) fn inputs(&self) -> &[TensorRef] {
        &self.inputs
    }

    pub(super) fn outputs(&self) -> &[TensorRef] {
        &self.outputs
    }
}

impl fmt::Debug for NewLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, op, inputs, outputs } = self;
        let mut out = f.debug_struct("NewLaunch");
        out.field("operation", name).field("inputs", &inputs.len()).field("outputs", &outputs.len());
        if let Err(reason) = op {
            out.field("refused", reason);
        }
        out.finish()
    }
}

/// The operands of a launch that is being described.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operands {
    inputs: Vec<TensorRef>,
    outputs: Vec<TensorRef>,
    /// The first mistake.
    mistake: Option<PassRefusal>,
}

impl Operands {
    /// Notes a mistake, unless there was one before.
    pub(crate) fn refuse(&mut self, reason: PassRefusal) {
        self.mistake.get_or_insert(reason);
    }

    /// Adds an input whose elements must be of this type, and returns its number.
    pub(crate) fn input(&mut self, tensor: TensorRef, dtype: DType) -> u8 {
        self.check_type(&tensor, dtype);
        self.inputs.push(tensor);
        self.number(self.inputs.len())
    }

    /// Likewise, an output.
    pub(crate) fn output(&mut self, tensor: TensorRef, dtype: DType) -> u8 {
        self.check_type(&tensor, dtype);
        self.outputs.push(tensor);
        self.number(self.outputs.len())
    }

    pub(crate) fn inputs_mut(&mut self) -> &mut [TensorRef] {
        &mut self.inputs
    }

    pub(crate) fn outputs(&self) -> &[TensorRef] {
        &self.outputs
    }

    fn check_type(&mut self, tensor: &TensorRef, dtype: DType) {
        if tensor.dtype() != dtype {
            self.refuse(PassRefusal::OtherType);
        }
    }

    /// The number of the last one of a list.
    fn number(&mut self, len: usize) -> u8 {
        u8::try_from(len - 1).unwrap_or_else(|_| {
            self.refuse(PassRefusal::TooLong);
            u8::MAX
        })
    }

    /// The launch of that operation, which is made only if nothing was refused.
    pub(crate) fn launch(self, name: &'static str, op: impl FnOnce() -> Op) -> NewLaunch {
        let Self { inputs, outputs, mistake } = self;
        let op = mistake.map_or_else(|| Ok(op()), Err);
        NewLaunch { name, op, inputs, outputs }
    }
}
