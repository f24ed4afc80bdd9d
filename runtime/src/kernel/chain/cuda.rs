//! A chain on a GPU: one kernel, in which each thread computes all steps of its elements.

use std::fmt::Write as _;

use smallvec::SmallVec;

use super::{Chain, ElementSource};
use crate::{
    DType, Result,
    backend::{Launch, cuda::kernels::Submit},
    kernel::{
        cuda::{
            before, element,
            map::{Map, Operand, Step, Stored},
            mapped::Mapped,
        },
        instances::Instances,
        source::Functions,
    },
};

/// A chain, but for its numbers, for element types of its inputs.
#[derive(PartialEq, Eq, Hash)]
struct Variant {
    structure: usize,
    inputs: SmallVec<[DType; 8]>,
}

static INSTANCES: Instances<Variant> = Instances::new();

/// Launches a chain.
///
/// An output over an input is right: the input's elements are at the output's places, in the same packs, and a thread loads
/// all packs of a pass before it stores one.
pub(super) fn launch(chain: &Chain, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let inputs = launch.inputs.iter().map(|view| view.dtype).collect();
    let variant = Variant { structure: chain.known.number, inputs };
    let instance = INSTANCES.of(chain.known.name, variant, |variant| text(chain, &variant.inputs));
    let numbers = chain.steps.iter().flat_map(|step| step.constants.iter().flatten());
    let mapped = Mapped {
        tensors: &launch.inputs,
        outputs: &launch.outputs,
        numbers: SmallVec::new(),
        constants: numbers.map(|number| number.bits).collect(),
    };
    mapped.launch(instance, gpu)
}

/// The entry and the source of a chain whose inputs have these element types.
pub(super) fn text(chain: &Chain, inputs: &[DType]) -> (String, String) {
    let mut functions = Functions::default();
    let names: Vec<String> = chain.steps.iter().map(|step| functions.add(step.definition)).collect();
    let mut text = before(false, functions.further);
    let _ = writeln!(text, "{}", functions.text);
    let entry = format!("{}_chain", names.first().map_or("", String::as_str));
    map(chain, names, inputs).kernel(&mut text, &entry);
    (entry, text)
}

/// The loop of a chain, whose steps have functions of these names.
fn map(chain: &Chain, names: Vec<String>, inputs: &[DType]) -> Map<'static> {
    let mut steps: Vec<Step<'static>> = Vec::new();
    for (step, name) in chain.steps.iter().zip(names) {
        let operands = step.arguments.iter().zip(step.tensors()).map(|(argument, compute)| {
            let (operand, dtype) = match *argument {
                ElementSource::Input(input) => (Operand::Input(input.into()), inputs[usize::from(input)]),
                ElementSource::Result { step, part } => {
                    let (step, part) = (usize::from(step), usize::from(part));
                    (Operand::Result { step, part }, chain.steps[step].stored[part])
                }
            };
            (operand, Stored::of(compute, dtype))
        });
        let stored = step.definition.outputs.iter().zip(&step.stored);
        steps.push(Step {
            definition: step.definition,
            name,
            fixed: step.fixed(),
            operands: operands.collect(),
            results: stored.map(|(compute, dtype)| Stored::of(*compute, *dtype)).collect(),
        });
    }
    let stored = |dtype: &DType| Stored { name: element(*dtype), size: dtype.size() };
    Map {
        inputs: inputs.iter().map(stored).collect(),
        outputs: chain.outputs.iter().map(|(step, part)| (usize::from(*step), usize::from(*part))).collect(),
        steps,
        padded: false,
    }
}
