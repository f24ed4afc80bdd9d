//! The launches of chains, their text, and what a GPU computes.

use proptest::prelude::*;

use super::*;
use crate::{
    Error,
    backend::{
        cpu::kernels::testing::decode,
        cuda::{
            Check, CudaBackend, CudaOptions, compile_source,
            kernels::testing::{Recorder, kinds, say_skipped, shapes, strides, view, whole},
        },
    },
    kernel::{
        chain::{cuda::text, sample::sample},
        cuda::tests::check as check_passes,
        instances,
    },
};

proptest! {
    /// The passes of a launch: every element is written by the pass that has read the elements at its place, so also an
    /// input of which it is the memory.
    #[test]
    fn outputs_may_be_the_memory_of_inputs(
        shape in shapes(),
        kinds in [kinds(), kinds()],
        shift in 0u64..3,
        over in 0usize..2,
        is_half in any::<bool>(),
    ) {
        let t = if is_half { DType::F16 } else { DType::F32 };
        let first = of(both::DEFINITION, &[ElementSource::Input(0), ElementSource::Input(1)]);
        let second = Step { stored: smallvec![t], ..of(doubled::DEFINITION, &[ElementSource::Result { step: 0, part: 1 }]) };
        let chain = Chain::new(vec![first, second], 2, &[(1, 0)]).unwrap();
        let y = whole(0x4000 + shift * t.size() as u64, t, &shape);
        let mut x = [0, 1].map(|k| view(0x1000 * (k as u64 + 1), t, &shape, &strides(&shape, &kinds[k])));
        x[over] = y;
        check_passes(chain.into(), &x, &y);
    }
}

/// Numbers are parameters: chains that differ by them are one kernel, which finds them in the order of the steps.
#[test]
fn numbers_are_parameters_of_one_kernel() {
    let fixed = |by: f32, argument| Step {
        constants: smallvec![None, Some(by.number())],
        ..of(shifted::DEFINITION, &[argument])
    };
    let run = |a: f32, b: f32, dtype| {
        let chain =
            Chain::new(vec![fixed(a, ElementSource::Input(0)), fixed(b, result(0))], 1, &[(1, 0)]).unwrap();
        let mut run = Recorder::of(chain, &[whole(0x1000, dtype, &[8])], &[whole(0x2000, DType::F32, &[8])]);
        assert_eq!(run.calls.len(), 1);
        let (kernel, _, bytes) = run.calls.remove(0);
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        (kernel.unit.source, [f32::from_bits(words[5] as u32), f32::from_bits(words[6] as u32)])
    };
    let (source, numbers) = run(1.5, -2.0, DType::F32);
    assert_eq!(numbers, [1.5, -2.0]);
    let (other, numbers) = run(3.0, 4.0, DType::F32);
    assert!(std::ptr::eq(source, other) && numbers == [3.0, 4.0]);
    assert!(!std::ptr::eq(source, run(3.0, 4.0, DType::F16).0), "inputs of another type");
}

/// The largest parameter that a chain can have; the recorder refuses one that is too large for a kernel.
#[test]
fn the_largest_chain_fits_into_a_parameter() {
    let shape = [3, 5, 3, 5, 3, 5];
    let permuted = view(0x1000, DType::F32, &shape, &[1, 3, 15, 45, 225, 675]);
    let reads =
        |i: u8| of(shifted::DEFINITION, &[ElementSource::Input(2 * i), ElementSource::Input(2 * i + 1)]);
    let numbers = Step { constants: smallvec![Some(1.0f32.number()); 16], ..of(sixteen::DEFINITION, &[]) };
    let steps: Vec<Step> = (0..8).map(reads).chain(vec![numbers; Chain::MOST_NUMBERS / 16]).collect();
    let chain = Chain::new(steps, Chain::MOST_INPUTS, &[(0, 0); Chain::MOST_OUTPUTS]).unwrap();
    let outputs: Vec<View> = (0..8).map(|i| whole(0x10_0000 * (i + 1), DType::F32, &shape)).collect();
    let run = Recorder::of(chain, &vec![permuted; Chain::MOST_INPUTS], &outputs);
    assert_eq!(run.calls[0].2.len(), 8 * (16 + 8 + 3 + 256 + 7 + 16 * 6));
}

/// Each function once; results are rounded where a step reads them, and bits are read as another type.
#[test]
fn the_text_of_a_chain() {
    let large = Step { stored: smallvec![DType::Bool], ..of(is_large::DEFINITION, &[result(1)]) };
    let steps = vec![
        Step {
            stored: smallvec![DType::Bf16; 2],
            ..of(both::DEFINITION, &[ElementSource::Input(0), ElementSource::Input(1)])
        },
        of(doubled::DEFINITION, &[result(0)]),
        large,
        of(doubled::DEFINITION, &[result(1)]),
    ];
    let chain = Chain::new(steps, 2, &[(0, 1), (2, 0), (3, 0)]).unwrap();
    let (entry, text) = text(&chain, &[DType::F32, DType::F16]);
    assert_eq!(entry, "both_0_chain");
    assert_eq!(text.matches("doubled_1(").count(), 3, "a function, and two calls: {text}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let first = lines.iter().position(|line| line.starts_with("const Tuple2<f32, f32> r0")).unwrap();
    assert_eq!(
        lines[first..first + 11],
        [
            "const Tuple2<f32, f32> r0 = both_0(lang::read(x0.v[i]), lang::read(x1.v[i]));",
            "const bf16 s0p0 = lang::Write<bf16>::of(r0.v0);",
            "y0.set(i, r0.v1);",
            "const f32 r1 = doubled_1(lang::read(s0p0));",
            "const f32 s1p0 = lang::Write<f32>::of(r1);",
            "const bool r2 = is_large_2(lang::read(s1p0));",
            "y1.set(i, r2);",
            "const f32 r3 = doubled_1(lang::read(s1p0));",
            "y2.set(i, r3);",
            "}",
            "store_pack<bf16, V>(y0.all(), p.y[0], n * V, left);",
        ]
    );
}

#[test]
fn samples_are_chains() {
    let (chain, inputs) =
        sample(&[both::DEFINITION, both::DEFINITION, is_large::DEFINITION], DType::Bf16).unwrap();
    assert_eq!(inputs, [DType::Bf16; 2]);
    assert_eq!(
        format!("{chain:?}"),
        "both(x0, x1) -> [Bf16, Bf16]; both(s0.1, s0) -> [Bf16, Bf16]; is_large(s1.1) -> [Bool]; writes s1, s2"
    );
    assert!(sample(&[centred::DEFINITION], DType::F32).is_none());
}

/// The folder of NVRTC, with or without a GPU.
#[test]
fn texts_of_random_chains_compile() {
    let kernels = kernels();
    for seed in seeds(3) {
        let case = Case::random(&mut StdRng::seed_from_u64(seed), &kernels, true);
        let inputs: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        let chain = Chain::new(case.steps.clone(), inputs.len(), &case.outputs).unwrap();
        let source = instances::source("a random chain", text(&chain, &inputs).1);
        match compile_source(Box::leak(Box::new(source)), &Check::new("sm_90a")) {
            Ok(_) => {}
            Err(error @ Error::NoDevice { .. }) => {
                return say_skipped("texts_of_random_chains_compile", &error);
            }
            Err(error) => panic!("seed {seed}: {error}\n{case:#?}"),
        }
    }
}

/// NaNs as one: the compiler may choose their bits otherwise in each kernel.
fn without_nan_bits(case: &Case, outputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let outputs = outputs.into_iter().zip(&case.outputs).map(|(mut bytes, (step, part))| {
        let dtype = case.steps[usize::from(*step)].stored[usize::from(*part)];
        let is_nan = |element: &[u8]| dtype.is_float() && decode(dtype, element).is_nan();
        for element in bytes.chunks_mut(dtype.size()).filter(|element| is_nan(element)) {
            element.fill(0xff);
        }
        bytes
    });
    outputs.collect()
}

/// On a GPU: random chains are their steps one after the other there, too.
#[test]
fn chains_are_their_steps_on_a_gpu() {
    let mut device = match CudaBackend::new(0, CudaOptions::default()) {
        Ok(device) => device,
        Err(error) => return say_skipped("chains_are_their_steps_on_a_gpu", &error),
    };
    let kernels = kernels();
    for seed in seeds(40) {
        let case = Case::random(&mut StdRng::seed_from_u64(seed), &kernels, false);
        check(&mut device, &case, &format!("seed {seed}"), without_nan_bits);
    }
    check(&mut device, &of_bits(&kernels), "bits", without_nan_bits);
}
