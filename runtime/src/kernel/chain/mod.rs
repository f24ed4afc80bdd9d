//! Several kernels of elements as one operation: a [`Chain`].
//!
//! A chain has steps. Each is a kernel whose tensors are inputs of the chain or results of earlier steps; those results
//! that later code needs are written, and the others exist only while a block of elements is computed. Every bit is that of
//! the steps run one after the other: a result is rounded to the type in which it would have been stored, and read from it.
//!
//! A launch has the inputs, spread to the common shape with any strides, and a contiguous output of that shape for each
//! result that is written. An output may be the memory of an input that is contiguous and has elements of the same size:
//! each element, or pack of elements, is read by the thread that writes it, before it does so. Inputs and outputs must not
//! overlap otherwise.
//!
//! [`Elementwise`] tells a pass which operations can be steps, and [`structure`] bounds what a process keeps of chains.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::{
    constants::{Constants, fixed},
    definition::{Compute, Definition, Kind, Number},
    operation::elementwise,
};
use crate::{
    DType,
    backend::{ElementSource, Op, View},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod joiner;
mod operation;
#[cfg(feature = "cuda")]
pub(crate) mod sample;
mod structure;
#[cfg(test)]
mod tests;

pub(super) use joiner::JOINER;
use structure::{Known, Structure};

/// A kernel of elements, as one launch has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elementwise<'a> {
    pub(crate) definition: &'static Definition,
    /// For each parameter, the number that replaces it; empty if all are tensors.
    pub(crate) constants: &'a Constants,
}

impl<'a> Elementwise<'a> {
    /// Returns what an operation computes for each element, if it is a kernel of elements that draws no random numbers: its
    /// inputs are then its tensors, in the order of the parameters.
    pub(crate) fn of(op: &'a Op) -> Option<Self> {
        elementwise(op).map(|(definition, constants)| Self { definition, constants })
    }
}

/// A kernel in a chain.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) definition: &'static Definition,
    /// As those of [`Elementwise`].
    pub(crate) constants: SmallVec<[Option<Number>; 4]>,
    /// For each parameter that is a tensor.
    pub(crate) arguments: SmallVec<[ElementSource; 4]>,
    /// For each result, the type in which it would have been stored.
    pub(crate) stored: SmallVec<[DType; 2]>,
}

impl Step {
    /// The number that replaces a parameter.
    fn constant(&self, parameter: usize) -> Option<Number> {
        self.constants.get(parameter).copied().flatten()
    }

    /// A bit for each parameter that is a number.
    fn fixed(&self) -> u32 {
        fixed(&self.constants)
    }

    /// The types in which the parameters that are tensors are computed.
    fn tensors(&self) -> impl Iterator<Item = Compute> {
        let all = self.definition.inputs.iter().enumerate();
        all.filter(|(i, _)| self.constant(*i).is_none()).map(|(_, (_, compute))| *compute)
    }

    /// Returns whether it is a kernel of elements without random numbers whose tensors and results are all given.
    fn is_complete(&self) -> bool {
        let is_of_elements = matches!(self.definition.kind, Kind::Elements);
        let draws = self.definition.inputs.iter().any(|(_, compute)| *compute == Compute::Random);
        let stored = self.stored.iter().zip(self.definition.outputs);
        is_of_elements
            && !draws
            && self.tensors().count() == self.arguments.len()
            && self.stored.len() == self.definition.outputs.len()
            && stored.into_iter().all(|(dtype, compute)| compute.fits(*dtype))
    }
}

/// Kernels of elements as one operation.
pub(crate) struct Chain {
    steps: Vec<Step>,
    /// The step and the part of each result that is written.
    outputs: SmallVec<[(u8, u8); 2]>,
    /// Its name, and what else the process keeps of chains that differ from it by numbers only.
    known: &'static Known,
    /// Made by the first launch on a CPU.
    plan: OnceLock<cpu::Plan>,
}

impl Chain {
    /// The largest number of steps.
    pub(crate) const MOST_STEPS: usize = 32;
    /// The largest number of tensors that are read: that of a launch on a GPU.
    pub(crate) const MOST_INPUTS: usize = 16;
    /// The largest number of results that are written.
    pub(crate) const MOST_OUTPUTS: usize = 8;
    /// The largest number of parameters that are numbers: with all else, they fit into a kernel's parameter of 4 KB.
    const MOST_NUMBERS: usize = 256;

    /// Creates a chain of steps that read `inputs` tensors and results of earlier steps; of `outputs`, the step and the part
    /// of each result that is written. `None` beyond the limits, if an argument or a result does not exist or has elements
    /// that its reader cannot read, and if the process already knows [`structure::MOST`] other chains.
    pub(crate) fn new(steps: Vec<Step>, inputs: usize, outputs: &[(u8, u8)]) -> Option<Self> {
        let is_small = (1..=Self::MOST_STEPS).contains(&steps.len())
            && inputs <= Self::MOST_INPUTS
            && (1..=Self::MOST_OUTPUTS).contains(&outputs.len())
            && steps.iter().flat_map(|step| step.constants.iter().flatten()).count() <= Self::MOST_NUMBERS;
        if !is_small || !steps.iter().all(Step::is_complete) {
            return None;
        }
        let result = |before: usize, (step, part): (u8, u8)| {
            steps[..before].get(usize::from(step))?.stored.get(usize::from(part)).copied()
        };
        for (at, step) in steps.iter().enumerate() {
            for (argument, compute) in step.arguments.iter().zip(step.tensors()) {
                let is_there = match *argument {
                    ElementSource::Input(input) => usize::from(input) < inputs,
                    ElementSource::Result { step, part } => {
                        result(at, (step, part)).is_some_and(|dtype| compute.fits(dtype))
                    }
                };
                if !is_there {
                    return None;
                }
            }
        }
        if !outputs.iter().all(|output| result(steps.len(), *output).is_some()) {
            return None;
        }
        let known = structure::known(Structure::of(&steps, outputs), &steps)?;
        Some(Self { steps, outputs: SmallVec::from_slice(outputs), known, plan: OnceLock::new() })
    }

    /// Returns whether an output may be the memory of an input: that of the same elements in the same order, of the same size.
    pub(crate) fn may_write_over(input: &View, output: &View) -> bool {
        let is_place = (input.addr, input.dtype.size()) == (output.addr, output.dtype.size());
        is_place && input.layout.shape() == output.layout.shape() && input.layout.is_contiguous()
    }

    /// Returns the kernels, in order.
    #[cfg(test)]
    fn steps(&self) -> &[Step] {
        &self.steps
    }
}
