//! Random chains: kernels of every type, numbers for some parameters, results that are stored in any type that fits, inputs
//! of any layout, several outputs, some of them over an input.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use smallvec::SmallVec;

use crate::{
    DType,
    backend::cpu::kernels::testing::{ALL, Array, random_layout, random_shape, random_value},
    kernel,
    kernel::{
        chain::{Chain, ElementSource, Step},
        definition::{Compute, Definition, Kernel as _, Kind, Number},
        source::cuda_source,
    },
    value::layout::Layout,
};

#[kernel]
fn sum(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn product(a: f32, b: f32) -> f32 {
    a * b
}

/// Shows by many bits whether its argument was rounded.
#[kernel]
fn third(x: f32) -> f32 {
    x / 3.0
}

#[kernel]
fn scaled(x: f32, by: f32) -> f32 {
    x * by
}

#[kernel]
fn parts(x: f32, by: i32) -> (f32, i32, bool) {
    (x.fract(), x.trunc() as i32 + by, x < 0.0)
}

#[kernel]
fn extremes(a: f32, b: f32) -> (f32, f32) {
    (a.min(b), a.max(b))
}

#[kernel]
fn mixed(a: i32, b: u32, c: u8, d: bool) -> (i32, u32, u8, bool) {
    (a - b as i32, b * 3 + a as u32, c + d as u8, d ^ (a < 0))
}

#[kernel]
fn halved(a: u32) -> u32 {
    a / 2
}

#[kernel]
fn to_float(a: i32) -> f32 {
    a as f32
}

#[kernel]
fn byte_to_float(a: u8) -> f32 {
    a as f32
}

#[kernel]
fn to_bytes(x: f32) -> (u8, bool) {
    (x as u8, x > 1.0)
}

#[kernel]
fn chosen(flag: bool, a: f32, b: f32) -> f32 {
    if flag { a } else { b }
}

/// Shows by many bits that its argument has 64.
#[kernel]
fn long_third(x: f64) -> f64 {
    x / 3.0
}

#[kernel]
fn long_mixed(a: i64, b: i8, c: f64) -> (i64, i8, f32) {
    (a * 3 - b as i64, b / 2 + a as i8, c as f32)
}

#[kernel]
fn to_long_float(a: f32, b: i64) -> f64 {
    a as f64 + b as f64
}

/// Kernels of this file, of which half of the steps are: mostly arithmetic, which shows rounding.
const OWN: usize = 12;

/// The kernels of this file, and all of the operations that have no loop, whose rounds a random number would decide.
pub(super) fn kernels() -> Vec<&'static Definition> {
    let own: [_; OWN] = [
        sum::DEFINITION,
        product::DEFINITION,
        third::DEFINITION,
        scaled::DEFINITION,
        parts::DEFINITION,
        extremes::DEFINITION,
        mixed::DEFINITION,
        halved::DEFINITION,
        to_float::DEFINITION,
        byte_to_float::DEFINITION,
        to_bytes::DEFINITION,
        chosen::DEFINITION,
    ];
    let long = [long_third::DEFINITION, long_mixed::DEFINITION, to_long_float::DEFINITION];
    own.into_iter().chain(long).chain(of_operations()).collect()
}

#[cfg(feature = "cuda")]
fn of_operations() -> impl Iterator<Item = &'static Definition> {
    let draws = |definition: &Definition| definition.inputs.iter().any(|(_, c)| *c == Compute::Random);
    let is_straight = |definition: &Definition| !cuda_source(definition).contains("for (");
    let all = crate::ops::kernels().into_iter();
    all.filter(move |d| matches!(d.kind, Kind::Elements) && !draws(d) && is_straight(d))
}

#[cfg(not(feature = "cuda"))]
fn of_operations() -> impl Iterator<Item = &'static Definition> {
    std::iter::empty()
}

/// A chain and the tensors of a launch.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) steps: Vec<Step>,
    pub(super) inputs: Vec<Array>,
    pub(super) outputs: Vec<(u8, u8)>,
    /// For each output, the input that it is written over.
    pub(super) written: Vec<Option<u8>>,
    pub(super) shape: Vec<usize>,
}

impl Case {
    /// With `bits`, steps may read the bits of floats as integers.
    pub(super) fn random(rng: &mut StdRng, kernels: &[&'static Definition], bits: bool) -> Self {
        let shape = match rng.random_range(0..12) {
            // Several tasks; the last is not full, nor is its last block.
            0 => vec![3, rng.random_range(15_000..20_000)],
            1 => vec![rng.random_range(1000..3000)],
            _ => {
                let rank = rng.random_range(0..5);
                random_shape(rng, rank)
            }
        };
        let types: Vec<DType> = (0..rng.random_range(1..7)).map(|_| *ALL.choose(rng).unwrap()).collect();
        let count = if rng.random_bool(0.05) { Chain::MOST_STEPS } else { rng.random_range(1..10) };
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..count {
            let some = if rng.random_bool(0.5) { &kernels[..OWN] } else { kernels };
            let definition = some.choose(rng).unwrap();
            steps.push(step(rng, definition, &types, &steps, bits));
        }
        let results: Vec<(u8, u8)> = steps
            .iter()
            .enumerate()
            .flat_map(|(i, step)| (0..step.stored.len()).map(move |part| (i as u8, part as u8)))
            .collect();
        let mut outputs: Vec<(u8, u8)> =
            (0..rng.random_range(0..5)).map(|_| *results.choose(rng).unwrap()).collect();
        outputs.push(results[results.len() - 1]);
        let mut layouts: Vec<Layout> = types.iter().map(|_| random_layout(rng, &shape, true)).collect();
        let mut written: Vec<Option<u8>> = Vec::new();
        for (step, part) in &outputs {
            let size = steps[usize::from(*step)].stored[usize::from(*part)].size();
            let fits = |i: &usize| types[*i].size() == size && !written.contains(&Some(*i as u8));
            let some: Vec<usize> = (0..types.len()).filter(fits).collect();
            let over = some.choose(rng).copied().filter(|_| rng.random_bool(0.7));
            if let Some(i) = over {
                layouts[i] = Layout::contiguous(&shape).unwrap();
            }
            written.push(over.map(|i| i as u8));
        }
        let inputs = types.iter().zip(layouts).map(|(dtype, layout)| array(rng, *dtype, layout)).collect();
        Self { steps, inputs, outputs, written, shape }
    }

    /// The same, as if results were stored in f32, so that they are not rounded before they are read.
    pub(super) fn without_rounding(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        for (i, step) in steps.iter_mut().enumerate() {
            let computes = step.definition.outputs.iter();
            for (part, (dtype, compute)) in step.stored.iter_mut().zip(computes).enumerate() {
                if *compute == Compute::F32 && !self.outputs.contains(&(i as u8, part as u8)) {
                    *dtype = DType::F32;
                }
            }
        }
        steps
    }
}

/// A step whose tensors are inputs of these types or results of the steps before it, mostly the last ones.
fn step(
    rng: &mut StdRng,
    definition: &'static Definition,
    types: &[DType],
    before: &[Step],
    bits: bool,
) -> Step {
    let inputs = types.iter().enumerate().map(|(i, dtype)| (ElementSource::Input(i as u8), *dtype));
    let results = before.iter().enumerate().flat_map(|(i, step)| {
        let stored = step.stored.iter().enumerate();
        stored.map(move |(part, dtype)| (ElementSource::Result { step: i as u8, part: part as u8 }, *dtype))
    });
    let known: Vec<(ElementSource, DType)> = inputs.chain(results).collect();
    let fits = |compute: Compute, dtype: DType| {
        compute.fits(dtype) && (bits || matches!(compute, Compute::F32 | Compute::F64) || !dtype.is_float())
    };
    let mut step =
        Step { definition, constants: SmallVec::new(), arguments: SmallVec::new(), stored: SmallVec::new() };
    for (_, compute) in definition.inputs {
        let fitting: Vec<_> = known.iter().filter(|(_, dtype)| fits(*compute, *dtype)).collect();
        let last = &fitting[fitting.len() - fitting.len().min(3)..];
        let chosen = if rng.random_bool(0.5) { last.choose(rng) } else { fitting.choose(rng) };
        match chosen.filter(|_| rng.random_bool(0.85)) {
            Some((argument, _)) => {
                step.arguments.push(*argument);
                step.constants.push(None);
            }
            None => step.constants.push(Some(number(rng, *compute))),
        }
    }
    if step.constants.iter().all(Option::is_none) {
        step.constants.clear();
    }
    for compute in definition.outputs {
        let fitting: Vec<DType> = ALL
            .into_iter()
            .filter(|dtype| fits(*compute, *dtype) || *compute == Compute::U16 && compute.fits(*dtype))
            .collect();
        step.stored.push(*fitting.choose(rng).unwrap());
    }
    step
}

fn number(rng: &mut StdRng, compute: Compute) -> Number {
    let bits = match compute {
        Compute::F32 => (random_value(rng, DType::F32) as f32).to_bits().into(),
        Compute::F64 => random_value(rng, DType::F64).to_bits(),
        Compute::I64 => rng.random(),
        Compute::Bool => rng.random_range(0..2),
        Compute::U8 | Compute::I8 => rng.random_range(0..256),
        Compute::U16 => rng.random_range(0..1 << 16),
        _ => rng.random_range(0..20),
    };
    Number { compute, bits }
}

/// Bits of floats that are read as those of integers: moved, and halved.
pub(super) fn of_bits(kernels: &[&'static Definition]) -> Case {
    let moves = kernels.iter().find(|definition| definition.outputs == [Compute::U16]).unwrap();
    let of = |definition, arguments: &[ElementSource], stored: DType| Step {
        definition,
        constants: SmallVec::new(),
        arguments: arguments.into(),
        stored: SmallVec::from_elem(stored, 1),
    };
    let result = |step: u8| ElementSource::Result { step, part: 0 };
    let steps = vec![
        of(third::DEFINITION, &[ElementSource::Input(0)], DType::F16),
        of(moves, &[ElementSource::Input(1), result(0), ElementSource::Input(2)], DType::F16),
        of(scaled::DEFINITION, &[result(1), ElementSource::Input(0)], DType::F32),
        of(halved::DEFINITION, &[result(2)], DType::I32),
    ];
    let array = |dtype: DType, values: &[f64]| {
        let values: Vec<f64> = (0..100).map(|i| values[i % values.len()]).collect();
        Array::contiguous(dtype, &[5, 20], &values)
    };
    let inputs = vec![
        array(DType::F32, &[1.0, -2.5, 0.0, 1000.0, 7.0]),
        array(DType::Bool, &[1.0, 0.0, 0.0]),
        array(DType::F16, &[0.5, -65504.0]),
    ];
    let outputs = vec![(1, 0), (2, 0), (3, 0)];
    Case { steps, inputs, outputs, written: vec![Some(2), None, Some(0)], shape: vec![5, 20] }
}

/// Values of a type, and for one of eight elements any bits.
fn array(rng: &mut StdRng, dtype: DType, layout: Layout) -> Array {
    let values: Vec<f64> = (0..layout.count()).map(|_| random_value(rng, dtype)).collect();
    let mut array = Array::strided(dtype, layout, rng.random_range(0..9), &values);
    let from = array.before * dtype.size();
    let shown = from..from + layout.span() * dtype.size();
    for element in array.bytes[shown].chunks_mut(dtype.size()) {
        if dtype == DType::Bool {
            // The bytes between the elements of a view are not a valid `bool`.
            element[0] &= 1;
        } else if rng.random_bool(0.125) {
            rng.fill(element);
        }
    }
    array
}
