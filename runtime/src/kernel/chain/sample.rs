//! Chains that CI compiles, of kernels that it names.

use smallvec::SmallVec;

use super::{Chain, ElementSource, Step, cuda::text};
use crate::{
    DType, Error, Float, Result,
    backend::cuda::{Check, compile_source},
    kernel::definition::Definition,
    kernel::instances,
};

/// Compiles a chain of kernels of elements, as [`compile`](crate::kernel::cuda::compile) does each. A parameter is the last
/// earlier result that fits, or the one before it for the next parameter, and an input if there is none; results that
/// no step reads are written.
///
/// # Errors
/// As for [`compile`](crate::kernel::cuda::compile); [`Error::Argument`] if the kernels are too many, or not all of
/// elements.
pub fn compile_chain<T: Float>(definitions: &[&'static Definition], check: &Check) -> Result<String> {
    let (chain, inputs) = sample(definitions, T::DTYPE).ok_or_else(|| Error::Argument {
        op: "compile_chain",
        reason: "the kernels are not a chain".into(),
    })?;
    let source = instances::source("a chain", text(&chain, &inputs).1);
    compile_source(Box::leak(Box::new(source)), check)
}

/// A chain whose floats are stored as `float`, and the types of its inputs.
pub(super) fn sample(definitions: &[&'static Definition], float: DType) -> Option<(Chain, Vec<DType>)> {
    let mut inputs: Vec<DType> = Vec::new();
    let mut results: Vec<(ElementSource, DType)> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    for (at, definition) in definitions.iter().enumerate() {
        let mut arguments: SmallVec<[ElementSource; 4]> = SmallVec::new();
        for (_, compute) in definition.inputs {
            let unread = |argument: &ElementSource| !arguments.contains(argument);
            let fitting = results.iter().rev().find(|(of, dtype)| compute.fits(*dtype) && unread(of));
            let argument = fitting.map(|(of, _)| *of).unwrap_or_else(|| {
                inputs.push(compute.stored(float));
                ElementSource::Input((inputs.len() - 1) as u8)
            });
            arguments.push(argument);
        }
        let stored: SmallVec<[DType; 2]> =
            definition.outputs.iter().map(|compute| compute.stored(float)).collect();
        let own = stored.iter().enumerate();
        results.extend(
            own.map(|(part, dtype)| (ElementSource::Result { step: at as u8, part: part as u8 }, *dtype)),
        );
        steps.push(Step { definition, constants: SmallVec::new(), arguments, stored });
    }
    let is_read = |of: &ElementSource| steps.iter().any(|step| step.arguments.contains(of));
    let outputs: Vec<(u8, u8)> = results
        .iter()
        .filter_map(|(of, _)| match *of {
            ElementSource::Result { step, part } if !is_read(of) => Some((step, part)),
            _ => None,
        })
        .collect();
    Some((Chain::new(steps, inputs.len(), &outputs)?, inputs))
}
