use std::{env, hash::Hasher};

use rand::{SeedableRng, rngs::StdRng};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::smallvec;

use super::*;
use crate::{
    backend::{
        Arenas as _, Backend, Launch, Operation as _, Stream as _, View,
        cpu::{CpuBackend, CpuOptions, kernels::testing::Array},
    },
    kernel,
    kernel::{
        definition::{Constant as _, Kernel as _, Padded},
        operation::operation,
    },
    memory::COPY,
    value::layout::Layout,
};

#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod random_chains;

use device::Bench;
use random_chains::{Case, kernels, of_bits};

#[kernel]
fn doubled(x: f32) -> f32 {
    x + x
}

#[kernel]
fn shifted(x: f32, by: f32) -> f32 {
    x + by
}

#[kernel]
fn both(a: f32, b: f32) -> (f32, f32) {
    (a + b, a - b)
}

#[kernel]
#[rustfmt::skip]
fn sixteen(
    a: f32, b: f32, c: f32, d: f32, e: f32, f: f32, g: f32, h: f32,
    i: f32, j: f32, k: f32, l: f32, m: f32, n: f32, o: f32, p: f32,
) -> f32 {
    a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p
}

#[kernel]
fn is_large(x: f32) -> bool {
    x > 100.0
}

#[kernel]
fn noisy(x: f32, r: Random) -> f32 {
    x + r.uniform()
}

#[kernel(rows)]
fn centred(x: Row<f32>) -> Row<f32> {
    let mean = x.sum() / x.len() as f32;
    x.map(|v| v - mean)
}

fn cpu(threads: usize) -> CpuBackend {
    CpuBackend::new(CpuOptions { threads: Some(threads), test_mode: None }).unwrap()
}

/// A step without numbers whose results are f32.
fn of(definition: &'static Definition, arguments: &[ElementSource]) -> Step {
    let stored = definition.outputs.iter().map(|_| DType::F32);
    Step { definition, constants: smallvec![], arguments: arguments.into(), stored: stored.collect() }
}

fn result(step: u8) -> ElementSource {
    ElementSource::Result { step, part: 0 }
}

/// Seeds of random chains: `GRAPHABLE_CHAINS` or `most` from `GRAPHABLE_CHAINS_FROM` or 0 on. One process makes at most
/// [`structure::MOST`] chains.
fn seeds(most: u64) -> impl Iterator<Item = u64> {
    let of = |name: &str| env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let from = of("GRAPHABLE_CHAINS_FROM").unwrap_or(0);
    from..from + of("GRAPHABLE_CHAINS").unwrap_or(most)
}

/// The first output whose bytes differ, as its element.
fn difference(case: &Case, one: &[Vec<u8>], other: &[Vec<u8>]) -> Option<String> {
    let mut outputs = case.outputs.iter().zip(one.iter().zip(other));
    outputs.find(|(_, (a, b))| a != b).map(|((step, part), (a, b))| {
        let size = case.steps[usize::from(*step)].stored[usize::from(*part)].size();
        let at = a.chunks(size).zip(b.chunks(size)).position(|(a, b)| a != b);
        let of = |bytes: &[u8]| at.and_then(|at| Some(bytes.get(at * size..)?.get(..size)?.to_vec()));
        format!("step {step} part {part}, element {at:?}: {:x?}, not {:x?}", of(b), of(a))
    })
}

#[test]
fn chains_are_their_steps_one_after_the_other() {
    let kernels = kernels();
    let mut devices = [cpu(4), cpu(1)];
    for seed in seeds(400) {
        let case = Case::random(&mut StdRng::seed_from_u64(seed), &kernels, true);
        check(&mut devices[usize::from(seed % 4 == 0)], &case, &format!("seed {seed}"), |_, outputs| outputs);
    }
    check(&mut devices[0], &of_bits(&kernels), "bits", |_, outputs| outputs);
}

/// Runs a case both ways; `seen` says what of the outputs is compared.
fn check(
    device: &mut dyn Backend,
    case: &Case,
    name: &str,
    seen: impl Fn(&Case, Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) {
    let Case { steps, inputs, outputs, written, shape } = case;
    let expected = Bench::new(device).one_by_one(steps, inputs, outputs, shape, &[]);
    let chain = Chain::new(steps.clone(), inputs.len(), outputs).unwrap();
    let got = Bench::new(device).chained(chain, inputs, shape, written);
    if let Some(difference) = difference(case, &seen(case, expected), &seen(case, got)) {
        panic!("{name}: {difference}\n{case:#?}");
    }
}

/// The random chains tell a chain that does not round from one that does, and one that writes an input too early from one
/// that reads it first.
#[test]
fn breaks_are_found() {
    let kernels = kernels();
    let mut device = cpu(1);
    let (mut rounding, mut order) = (0, 0);
    for seed in 0..500 {
        let case = Case::random(&mut StdRng::seed_from_u64(seed), &kernels, true);
        let Case { steps, inputs, outputs, written, shape } = &case;
        let expected = Bench::new(&mut device).one_by_one(steps, inputs, outputs, shape, &[]);
        if let Some(chain) = Chain::new(case.without_rounding(), inputs.len(), outputs) {
            let got = Bench::new(&mut device).chained(chain, inputs, shape, written);
            rounding += usize::from(difference(&case, &expected, &got).is_some());
        }
        let early = Bench::new(&mut device).one_by_one(steps, inputs, outputs, shape, written);
        order += usize::from(difference(&case, &expected, &early).is_some());
    }
    assert!(rounding >= 20, "{rounding} of 500 chains differ if they do not round");
    assert!(order >= 8, "{order} of 500 chains differ if an input is written before a later step reads it");
}

/// Numbers that f16 and bf16 do not have, doubled after they were stored.
#[test]
fn results_are_rounded_as_they_would_be_stored() {
    let x = [70000.0f64, 1.0 + f64::powi(2.0, -11), 2049.0];
    let of_type = |dtype: DType| {
        let mut first = of(shifted::DEFINITION, &[ElementSource::Input(0)]);
        first.constants = smallvec![None, Some(0.0f32.number())];
        first.stored = smallvec![dtype];
        let second = of(doubled::DEFINITION, &[result(0)]);
        let chain = Chain::new(vec![first, second], 1, &[(1, 0)]).unwrap();
        let mut device = cpu(1);
        let bytes =
            Bench::new(&mut device).chained(chain, &[Array::contiguous(DType::F32, &[3], &x)], &[3], &[None]);
        bytes[0].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(of_type(DType::F32), [140_000.0, 2.0 + f32::powi(2.0, -10), 4098.0]);
    assert_eq!(of_type(DType::F16), [f32::INFINITY, 2.0, 4096.0]);
    assert_eq!(of_type(DType::Bf16), [140_288.0, 2.0, 4096.0]);
}

#[test]
fn names_are_those_of_the_steps() {
    let steps = |n: u8| {
        let first = of(shifted::DEFINITION, &[ElementSource::Input(0), ElementSource::Input(1)]);
        let rest = (0..n).map(|i| of(doubled::DEFINITION, &[result(i)]));
        std::iter::once(first).chain(rest).collect::<Vec<_>>()
    };
    let name = |n: u8| Chain::new(steps(n), 2, &[(n, 0)]).unwrap().name();
    assert_eq!(name(0), "shifted");
    assert_eq!(name(2), "shifted+doubled+doubled");
    assert_eq!(name(7).matches("doubled").count(), 7);
    assert_eq!(name(8), "shifted+doubled+doubled+doubled+doubled+doubled+doubled+2 more");
    assert!(std::ptr::eq(name(2), name(2)), "a name is made once");
    let chain = Chain::new(steps(1), 2, &[(1, 0), (0, 0)]).unwrap();
    assert_eq!(format!("{chain:?}"), "shifted(x0, x1) -> [F32]; doubled(s0) -> [F32]; writes s1, s0");
}

/// Whatever distinguishes a chain is among its parameters: audits and signatures compare nothing else.
#[test]
fn chains_are_equal_by_steps_wiring_types_and_numbers() {
    let hash = |steps: Vec<Step>, outputs: &[(u8, u8)]| {
        let mut hasher = FxHasher::default();
        Chain::new(steps, 2, outputs).unwrap().parameters(&mut hasher);
        hasher.finish()
    };
    let first = || of(shifted::DEFINITION, &[ElementSource::Input(0), ElementSource::Input(1)]);
    let fixed = |by: f32| Step {
        constants: smallvec![None, Some(by.number())],
        ..of(shifted::DEFINITION, &[ElementSource::Input(0)])
    };
    let second = of(doubled::DEFINITION, &[result(0)]);
    let all = [
        hash(vec![first(), second.clone()], &[(1, 0)]),
        hash(vec![first(), second.clone()], &[(0, 0)]),
        hash(vec![first(), second.clone()], &[(1, 0), (0, 0)]),
        hash(vec![first(), of(doubled::DEFINITION, &[ElementSource::Input(0)])], &[(1, 0)]),
        hash(
            vec![
                of(shifted::DEFINITION, &[ElementSource::Input(1), ElementSource::Input(0)]),
                second.clone(),
            ],
            &[(1, 0)],
        ),
        hash(vec![Step { stored: smallvec![DType::F16], ..first() }, second.clone()], &[(1, 0)]),
        hash(vec![fixed(1.0), second.clone()], &[(1, 0)]),
        hash(vec![fixed(-1.0), second.clone()], &[(1, 0)]),
        hash(vec![first()], &[(0, 0)]),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "{i}");
    }
    assert_eq!(all[7], hash(vec![fixed(-1.0), second], &[(1, 0)]));
}

#[test]
fn there_is_no_chain_beyond_the_limits_or_of_what_does_not_exist() {
    let double = |of_what: ElementSource| of(doubled::DEFINITION, &[of_what]);
    let doubles = |n: u8| {
        (0..n).map(|i| double(if i == 0 { ElementSource::Input(0) } else { result(i - 1) })).collect()
    };
    let last = (Chain::MOST_STEPS - 1) as u8;
    let is_one =
        |steps: Vec<Step>, inputs: usize, outputs: &[(u8, u8)]| Chain::new(steps, inputs, outputs).is_some();
    assert!(is_one(doubles(last + 1), Chain::MOST_INPUTS, &[(last, 0); Chain::MOST_OUTPUTS]));
    assert!(!is_one(doubles(last + 2), 1, &[(last, 0)]));
    assert!(!is_one(doubles(2), Chain::MOST_INPUTS + 1, &[(1, 0)]));
    assert!(!is_one(doubles(2), 1, &[(1, 0); Chain::MOST_OUTPUTS + 1]));
    let numbers = |steps: usize| {
        vec![Step { constants: smallvec![Some(1.0f32.number()); 16], ..of(sixteen::DEFINITION, &[]) }; steps]
    };
    assert!(is_one(numbers(Chain::MOST_NUMBERS / 16), 0, &[(0, 0)]));
    assert!(!is_one(numbers(Chain::MOST_NUMBERS / 16 + 1), 0, &[(0, 0)]));
    assert!(!is_one(vec![], 1, &[(0, 0)]), "no step");
    assert!(!is_one(doubles(2), 1, &[]), "nothing is written");
    assert!(!is_one(doubles(2), 1, &[(2, 0)]) && !is_one(doubles(2), 1, &[(1, 1)]), "no such result");
    assert!(!is_one(vec![double(ElementSource::Input(1))], 1, &[(0, 0)]), "no such input");
    assert!(!is_one(vec![double(result(0))], 1, &[(0, 0)]), "its own result");
    assert!(!is_one(
        vec![double(ElementSource::Input(0)), double(ElementSource::Result { step: 0, part: 1 })],
        1,
        &[(1, 0)]
    ));
    assert!(!is_one(vec![of(doubled::DEFINITION, &[])], 1, &[(0, 0)]), "a tensor is missing");
    assert!(
        !is_one(vec![of(doubled::DEFINITION, &[ElementSource::Input(0); 2])], 1, &[(0, 0)]),
        "one too many"
    );
    assert!(
        !is_one(vec![of(centred::DEFINITION, &[ElementSource::Input(0)])], 1, &[(0, 0)]),
        "a kernel of rows"
    );
    assert!(!is_one(vec![of(noisy::DEFINITION, &[ElementSource::Input(0)])], 1, &[(0, 0)]), "random numbers");
    let large =
        Step { stored: smallvec![DType::Bool], ..of(is_large::DEFINITION, &[ElementSource::Input(0)]) };
    assert!(is_one(vec![large.clone()], 1, &[(0, 0)]));
    assert!(!is_one(vec![large, double(result(0))], 1, &[(1, 0)]), "a bool is not a float");
    assert!(
        !is_one(vec![of(is_large::DEFINITION, &[ElementSource::Input(0)])], 1, &[(0, 0)]),
        "nor is it stored as one"
    );
    let unstored =
        Step { stored: smallvec![DType::F32], ..of(both::DEFINITION, &[ElementSource::Input(0); 2]) };
    assert!(!is_one(vec![unstored], 1, &[(0, 0)]), "the type of a result is missing");
}

#[test]
fn a_process_knows_a_bounded_number_of_structures() {
    let mut all = FxHashMap::default();
    let mut number = |outputs: &[(u8, u8)]| {
        let steps = [of(doubled::DEFINITION, &[ElementSource::Input(0)])];
        structure::known_among(&mut all, 2, Structure::of(&steps, outputs), &steps).map(|known| known.number)
    };
    assert_eq!(number(&[(0, 0)]), Some(0));
    assert_eq!(number(&[(0, 0); 2]), Some(1));
    assert_eq!(number(&[(0, 0); 3]), None);
    assert_eq!(number(&[(0, 0); 2]), Some(1), "those that are known stay");
}

#[test]
fn kernels_of_elements_are_recognised() {
    let op = Op::fixed(shifted::DEFINITION);
    let found = Elementwise::of(&op).unwrap();
    assert!(std::ptr::eq(found.definition, shifted::DEFINITION) && found.constants.is_empty());
    let fixed = [None, Some(2.0f32.number())];
    let op = operation(shifted::DEFINITION, fixed.into_iter(), Padded::default());
    let found = Elementwise::of(&op).unwrap();
    assert_eq!((found.definition.id, found.constants), (shifted::DEFINITION.id, &fixed[..]));
    for op in [Op::fixed(centred::DEFINITION), COPY] {
        assert!(Elementwise::of(&op).is_none(), "{op:?}");
    }
    let by = [None, Some(2.0f32.number())].into_iter();
    let of_rows = operation(centred::DEFINITION, by, Padded::default());
    assert!(Elementwise::of(&of_rows).is_none());
}

/// Elements that another thread writes.
#[test]
fn an_input_that_overlaps_an_output_otherwise_is_refused() {
    let step = of(doubled::DEFINITION, &[ElementSource::Input(0)]);
    let mut device = cpu(1);
    let memory = device.alloc(64).unwrap();
    let view = |at: u64, dtype, shape: &[usize], strides: &[usize]| View {
        addr: memory.addr() + at,
        dtype,
        layout: Layout::strided(shape, strides).unwrap(),
    };
    let output = view(16, DType::F32, &[2, 2], &[2, 1]);
    let mut launch = |input: View| {
        let chain = Chain::new(vec![step.clone()], 1, &[(0, 0)]).unwrap();
        device.launch(&Launch {
            op: chain.into(),
            inputs: smallvec![input],
            outputs: smallvec![output],
            workspace: 0,
        })
    };
    launch(output).unwrap();
    launch(view(0, DType::F32, &[2, 2], &[2, 1])).unwrap();
    for input in [
        view(16, DType::F32, &[2, 2], &[1, 2]),
        view(16, DType::F32, &[2, 2], &[0, 1]),
        view(16, DType::F16, &[2, 2], &[2, 1]),
        view(12, DType::F32, &[2, 2], &[2, 1]),
        view(16, DType::F32, &[2, 3], &[3, 1]),
    ] {
        let error = launch(input).unwrap_err();
        assert!(error.to_string().contains("would write what it reads"), "{input:?}: {error}");
    }
}
