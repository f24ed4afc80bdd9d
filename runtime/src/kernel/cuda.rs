//! A kernel on a GPU: its text, made a kernel for the types of the tensors, and launched.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use self::map::{Map, Operand, Step, Stored};
use super::{
    constants::{Constants, fixed},
    definition::{Compute, Definition, Kind},
    index,
    instances::{self, Instance, Instances},
    random::{NUMBERS, draws::Draws},
    rows,
    source::Functions,
};
use crate::{
    DType, Float, Result,
    backend::{
        Launch, View,
        cuda::{Check, compile_source, kernels::Submit},
    },
    base::rank::MAX_RANK,
};

pub(super) mod map;
pub(super) mod mapped;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use crate::backend::cuda::kernels::element;
use mapped::Mapped;

/// The source of operators and methods in CUDA C++.
pub(super) const LANGUAGE: &str = include_str!("language.cuh");

/// The same for `f64`, `i64` and `i8`: kernels without them do not have it.
pub(super) const FURTHER: &str = include_str!("further.cuh");

/// A kernel for certain element types of floats, with numbers for some parameters.
#[derive(PartialEq, Eq, Hash)]
struct Variant {
    id: TypeId,
    /// Of each tensor that is computed in f32, results last.
    floats: Floats,
    /// A bit for each parameter that is a number.
    fixed: u32,
    /// Set if the place of a random number depends on a padded dimension.
    padded: bool,
}

type Floats = SmallVec<[DType; 4]>;

static INSTANCES: Instances<Variant> = Instances::new();

fn instance(definition: &Definition, floats: Floats, fixed: u32, padded: bool) -> &'static Instance {
    let variant = Variant { id: definition.id, floats, fixed, padded };
    INSTANCES.of(definition.name, variant, |variant| text(definition, &variant.floats, fixed, padded))
}

/// Compiles a kernel whose floats are stored as `T`, without a GPU, and returns the compiler's remarks.
///
/// # Errors
/// [`Error::NoDevice`](crate::Error::NoDevice) without the compiler; [`Error::Device`](crate::Error::Device) with its log.
pub fn compile<T: Float>(definition: &Definition, check: &Check) -> Result<String> {
    match &definition.kind {
        Kind::Elements => {
            let floats = floats_of(definition, T::DTYPE);
            compile_source(&instance(definition, floats, 0, draws(definition)).source, check)
        }
        Kind::Rows(rows) => rows::cuda::samples(definition, rows, T::DTYPE, check.arch())
            .map(|source| compile_source(source, check))
            .collect(),
        Kind::Index(index) => index::cuda::samples(definition, index, T::DTYPE)
            .map(|source| compile_source(source, check))
            .collect(),
    }
}

/// Compiles element-wise kernels together, as [`compile`] does each: much of the compiler's time is for what precedes them.
///
/// # Errors
/// As for [`compile`].
pub fn compile_all<T: Float>(definitions: &[&Definition], check: &Check) -> Result<String> {
    let source = instances::source("several kernels", text_of_all(definitions, T::DTYPE));
    compile_source(Box::leak(Box::new(source)), check)
}

/// Returns whether a parameter is a random number.
pub(super) fn draws(definition: &Definition) -> bool {
    definition.inputs.iter().any(|(_, compute)| *compute == Compute::Random)
}

/// Launches a kernel; `constants` is empty if no parameter is a number, and it draws if one is a random number.
pub(super) fn launch(
    definition: &Definition,
    constants: &Constants,
    draws: Option<&Draws>,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let [tensors, generators, real] = match draws {
        Some(draws) => draws.split(definition, constants, &launch.inputs),
        None => [&launch.inputs[..], &[], &[]],
    };
    let fixed = fixed(constants);
    let computes = self::tensors(definition, fixed).chain(definition.outputs.iter().copied());
    let views = tensors.iter().chain(&launch.outputs);
    let floats = computes.zip(views).filter(|(compute, _)| *compute == Compute::F32);
    let padded = draws.is_some_and(|draws| !draws.padded.is_empty());
    let instance = instance(definition, floats.map(|(_, view)| view.dtype).collect(), fixed, padded);
    let mapped = Mapped {
        tensors,
        outputs: &launch.outputs,
        numbers: numbers(draws, generators, real, launch.outputs.first()),
        constants: constants.iter().flatten().map(|number| number.bits).collect(),
    };
    mapped.launch(instance, gpu)
}

/// The words about random numbers: mirrors the fields of `MapParams` that [`Map`] has for them.
fn numbers(
    draws: Option<&Draws>,
    generators: &[View],
    real: &[View],
    result: Option<&View>,
) -> SmallVec<[u64; 16]> {
    let mut words: SmallVec<[u64; 16]> = generators.iter().map(|view| view.addr).collect();
    let Some(draws) = draws else { return words };
    words.extend(draws.ahead.iter().map(|ahead| u64::from(*ahead)));
    if draws.padded.is_empty() {
        return words;
    }
    let shape = result.map_or(&[][..], |view| view.layout.shape());
    let (mut sizes, mut addresses) = ([1; MAX_RANK], [0; MAX_RANK]);
    for (to, size) in sizes.iter_mut().zip(shape) {
        *to = *size as u64;
    }
    for (axis, view) in draws.padded.axes().zip(real) {
        addresses[axis] = view.addr;
    }
    words.push(shape.len() as u64);
    words.extend(sizes);
    words.extend(addresses);
    words
}

/// The types of the parameters that are tensors; those in `fixed` are numbers.
fn tensors(definition: &Definition, fixed: u32) -> impl Iterator<Item = Compute> {
    let all = definition.inputs.iter().enumerate();
    all.filter(move |(i, (_, compute))| fixed & 1 << i == 0 && *compute != Compute::Random)
        .map(|(_, (_, compute))| *compute)
}

/// The source of a kernel and the name of its entry.
fn text(definition: &Definition, floats: &[DType], fixed: u32, padded: bool) -> (String, String) {
    let mut functions = Functions::default();
    let name = functions.add(definition);
    let mut text = before(draws(definition), functions.further);
    let _ = writeln!(text, "{}", functions.text);
    let entry = format!("{name}_map");
    map(definition, name, floats, fixed, padded).kernel(&mut text, &entry);
    (entry, text)
}

/// The loop of one kernel, whose function is `name`; `floats` are the types of its tensors that are computed in f32.
fn map<'a>(definition: &'a Definition, name: String, floats: &[DType], fixed: u32, padded: bool) -> Map<'a> {
    let mut floats = floats.iter();
    let mut stored = |compute: Compute| {
        let float = if compute == Compute::F32 { floats.next() } else { None };
        Stored::of(compute, *float.unwrap_or(&DType::F16))
    };
    let inputs: Vec<Stored> = tensors(definition, fixed).map(&mut stored).collect();
    let results: Vec<Stored> = definition.outputs.iter().map(|compute| stored(*compute)).collect();
    let operands = inputs.iter().enumerate().map(|(k, stored)| (Operand::Input(k), *stored)).collect();
    let outputs = (0..results.len()).map(|part| (0, part)).collect();
    Map { steps: vec![Step { definition, name, fixed, operands, results }], padded, inputs, outputs }
}

/// The code before the functions of kernels, some of which may draw random numbers, or have values of further types.
pub(super) fn before(draws: bool, further: bool) -> String {
    let numbers = if draws { NUMBERS } else { "" };
    let further = if further { FURTHER } else { "" };
    format!("#include \"common.cuh\"\n\n{LANGUAGE}\n{further}{numbers}")
}

/// The source of several kernels whose floats are stored as `float`.
fn text_of_all(definitions: &[&Definition], float: DType) -> String {
    let mut functions = Functions::default();
    let mut kernels = String::new();
    for (i, definition) in definitions.iter().enumerate() {
        let name = functions.add(definition);
        // Each has a parameter and a loop of its own.
        let _ = writeln!(kernels, "namespace kernel_{i} {{");
        let (entry, floats) = (format!("{name}_map"), floats_of(definition, float));
        map(definition, name, &floats, 0, draws(definition)).kernel(&mut kernels, &entry);
        kernels.push_str("}\n");
    }
    let before = before(definitions.iter().any(|definition| draws(definition)), functions.further);
    format!("{before}{}\n{kernels}", functions.text)
}

/// The types of the tensors that are computed in f32, all stored as `float`.
fn floats_of(definition: &Definition, float: DType) -> Floats {
    let all = definition.inputs.iter().map(|(_, compute)| compute).chain(definition.outputs);
    all.filter(|compute| **compute == Compute::F32).map(|_| float).collect()
}
