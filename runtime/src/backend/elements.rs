//! Operations that compute each element of their outputs from the elements of their inputs at the same place: a pass may
//! make one of several.

use smallvec::SmallVec;

use super::Op;
use crate::DType;

/// Makes one operation of several that work element by element.
pub(crate) trait JoinsElements: Sync {
    /// The largest numbers of steps, inputs and outputs.
    fn most(&self) -> [usize; 3];

    /// Joins steps that read `inputs` tensors and results of earlier steps; of `outputs`, the step and the part of each result
    /// that is written. The result computes, bit by bit, what the steps compute one after the other. An output may lie
    /// exactly where an input does that has the same layout, and elements of the same size.
    ///
    /// Returns `None` if it cannot join them, such as beyond the largest numbers.
    fn join(&self, steps: Vec<ElementStep>, inputs: usize, outputs: &[(u8, u8)]) -> Option<Op>;
}

/// One of the operations to join.
#[derive(Clone, Debug)]
pub(crate) struct ElementStep {
    /// The operation.
    pub(crate) op: Op,
    /// The source of each of its inputs.
    pub(crate) sources: SmallVec<[ElementSource; 4]>,
    /// The type of each of its outputs.
    pub(crate) stored: SmallVec<[DType; 2]>,
}

/// The source of an input of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementSource {
    /// An input of the joined operation.
    Input(u8),
    /// A result of an earlier step.
    Result { step: u8, part: u8 },
}
