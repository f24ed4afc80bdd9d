//! The switches of the numerics: what they change on a GPU, and what they do not.

use std::env;

use cudarc::driver::CudaContext;
use graphable::{Float, Numerics, bf16, f16, graphable, prelude::*};

use crate::support::{runtime, skipped};

#[graphable]
fn product<T: Float>(x: &Tensor<T>, w: &Param<T>) -> Result<Tensor<T>> {
    ops::matmul(x, w)
}

#[graphable]
fn convolve(x: &Tensor<f32>, w: &Param<f32>) -> Result<Tensor<f32>> {
    ops::conv2d(x, w, ops::ConvConfig::new().padding(1))
}

/// Numbers from -1 to 1 with all bits of their mantissa.
fn values<T: Float>(count: usize, seed: u32) -> Vec<T> {
    let hash = |i: usize| {
        let h = (i as u32 ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
        (h ^ (h >> 15)).wrapping_mul(0xc2b2_ae35)
    };
    (0..count).map(|i| T::from_f64(f64::from(hash(i)) / f64::from(1u32 << 31) - 1.0)).collect()
}

/// Every so many rows of a product are compared with f64: the host computes them slowly. Rows of a tile are all met.
const SAMPLED: usize = 13;

/// The rows of the product that are compared, in f64, and those of the product of the absolute values.
fn reference<T: Float>(x: &[T], w: &[T], [m, k, n]: [usize; 3]) -> (Vec<f64>, Vec<f64>) {
    let rows = m.div_ceil(SAMPLED);
    let (mut sums, mut absolute) = (vec![0.0; rows * n], vec![0.0; rows * n]);
    let w: Vec<f64> = w.iter().map(|w| w.to_f64()).collect();
    for (row, x) in x.chunks(k).step_by(SAMPLED).enumerate() {
        for (x, w) in x.iter().map(|x| x.to_f64()).zip(w.chunks(n)) {
            for (j, w) in w.iter().enumerate() {
                let term = x * w;
                sums[row * n + j] += term;
                absolute[row * n + j] += term.abs();
            }
        }
    }
    (sums, absolute)
}

/// The product with these switches: eager, and of each of several calls of a graph, all of which are equal.
fn computed<T: Float>(numerics: Numerics, x: &[T], w: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    let mut rt = runtime();
    rt.set_numerics(numerics);
    let w = Param::new(&rt, &[k, n], w).unwrap();
    let graph = ProductGraph::<T>::builder().audit_every(2).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let eager = {
        let x = step.tensor(&[m, k], x).unwrap();
        step.read(&ops::matmul(&x, &w).unwrap()).unwrap()
    };
    drop(step);
    for call in 0..5 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[m, k], x).unwrap();
        let y = graph.call(&step, &x, &w).unwrap_or_else(|e| panic!("{numerics}: {e}"));
        assert_eq!(step.read(&y).unwrap(), eager, "{numerics} {} {m}x{k}x{n}, call {call}", T::DTYPE);
    }
    assert!(rt.stats().replays > 0 && rt.stats().audits > 0, "{:?}", rt.stats());
    eager
}

/// The largest error of what is compared, relative to the sum of the absolute values of the terms.
fn error<T: Float>(y: &[T], [_, _, n]: [usize; 3], (want, absolute): &(Vec<f64>, Vec<f64>)) -> f64 {
    let sampled = y.chunks(n).step_by(SAMPLED).flatten();
    let errors = sampled.zip(want).zip(absolute).map(|((y, want), all)| (y.to_f64() - want).abs() / all);
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}

fn has_tf32() -> bool {
    CudaContext::new(0).unwrap().compute_capability().unwrap() >= (8, 0)
}

#[test]
fn tf32_rounds_the_operands_of_f32_products_where_it_is_allowed() {
    if skipped("tf32_rounds_the_operands_of_f32_products_where_it_is_allowed") {
        return;
    }
    for shape @ [m, k, n] in [[512, 1024, 768], [1024, 512, 1024]] {
        let (x, w) = (values::<f32>(m * k, 1), values::<f32>(k * n, 2));
        let want = reference(&x, &w, shape);
        for deterministic in [false, true] {
            let of = |tf32: bool| {
                let numerics = Numerics::default().tf32(tf32).deterministic(deterministic);
                error(&computed(numerics, &x, &w, shape), shape, &want)
            };
            let (full, rounded) = (of(false), of(true));
            assert!(full < 2e-6, "{shape:?} deterministic {deterministic}: {full:e} in full precision");
            assert!(rounded < 1.0 / 512.0, "{shape:?} deterministic {deterministic}: {rounded:e} with TF32");
            // The library rounds where it may: otherwise the switch would do nothing.
            assert!(
                !has_tf32() || rounded > 4.0 * full,
                "{shape:?}: {rounded:e} with TF32, {full:e} without"
            );
        }
    }
}

/// TF32 and reductions concern their types alone: others have the same bits with and without the switch.
#[test]
fn a_switch_changes_nothing_else() {
    if skipped("a_switch_changes_nothing_else") {
        return;
    }
    let shape @ [m, k, n] = [96, 640, 256];
    fn equal<T: Float>(shape @ [m, k, n]: [usize; 3], numerics: Numerics) {
        let (x, w) = (values::<T>(m * k, 1), values::<T>(k * n, 2));
        // What is measured may differ from run to run, so both are without a measurement.
        let [with, without] = [numerics, Numerics::default()].map(|n| n.deterministic(true));
        let (with, without) = (computed(with, &x, &w, shape), computed(without, &x, &w, shape));
        assert_eq!(with, without, "{} with {numerics}", T::DTYPE);
    }
    equal::<bf16>(shape, Numerics::default().tf32(true));
    equal::<f16>(shape, Numerics::default().tf32(true));
    equal::<f32>([m, k, n], Numerics::default().reduced_precision_reduction(true));
}

#[test]
fn reductions_in_16_bits_stay_within_their_bound() {
    if skipped("reductions_in_16_bits_stay_within_their_bound") {
        return;
    }
    fn check<T: Float>(unit: f64) {
        // Shapes whose inner dimension is worth splitting.
        for shape @ [m, k, n] in [[64, 16_384, 64], [16, 8192, 128], [128, 4096, 96]] {
            let (x, w) = (values::<T>(m * k, 3), values::<T>(k * n, 4));
            let want = reference(&x, &w, shape);
            let of = |reduced: bool| {
                let numerics = Numerics::default().reduced_precision_reduction(reduced);
                error(&computed(numerics, &x, &w, shape), shape, &want)
            };
            let (full, reduced) = (of(false), of(true));
            // Rounded once, to half a unit of a value that is at most the sum of the absolute values.
            assert!(full < unit / 2.0 + 1e-6, "{} {shape:?}: {full:e}", T::DTYPE);
            // Up to 32 parts, each rounded as the result is.
            assert!(reduced < 17.0 * unit, "{} {shape:?}: {reduced:e}", T::DTYPE);
        }
    }
    check::<bf16>(1.0 / 128.0);
    check::<f16>(1.0 / 1024.0);
}

#[test]
fn convolutions_round_f32_where_tf32_is_allowed() {
    if skipped("convolutions_round_f32_where_tf32_is_allowed") {
        return;
    }
    let without_library = env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_some();
    let (x, w) = (values::<f32>(4 * 64 * 28 * 28, 5), values::<f32>(64 * 64 * 9, 6));
    let run = |numerics: Numerics| {
        let mut rt = runtime();
        rt.set_numerics(numerics);
        let w = Param::new(&rt, &[64, 64, 3, 3], &w).unwrap();
        let graph = ConvolveGraph::builder().audit_every(2).build(&mut rt).unwrap();
        let mut all = Vec::new();
        for _ in 0..5 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[4, 64, 28, 28], &x).unwrap();
            all.push(step.read(&graph.call(&step, &x, &w).unwrap()).unwrap());
        }
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{numerics}");
        all.remove(0)
    };
    let full = run(Numerics::default());
    assert_eq!(run(Numerics::default().deterministic(true)).len(), full.len());
    let rounded = run(Numerics::default().tf32(true));
    let most = full.iter().zip(&rounded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    // 576 terms of at most 1, each off by at most 2^-9.
    assert!(most < 576.0 / 512.0, "{most}");
    let changed = most > 1e-4;
    assert!(changed || !has_tf32() || without_library, "TF32 changes nothing: {most}");
}

/// The same tensor with its channels next to each other in memory.
fn channels_last<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let lines = ops::contiguous(&ops::permute(x, &[0, 2, 3, 1])?)?;
    ops::permute(&lines, &[0, 3, 1, 2])
}

#[test]
fn convolutions_use_fourier_transforms_where_they_are_allowed() {
    if skipped("convolutions_use_fourier_transforms_where_they_are_allowed") {
        return;
    }
    let without_library = env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_some();
    // A shape for which cuDNN 9 expects a transform to be the fastest on an H100 and an H200.
    let (x, w) = (values::<f32>(32 * 128 * 28 * 28, 7), values::<f32>(128 * 128 * 9, 8));
    let bias = values::<f32>(128, 9);
    let run = |numerics: Numerics| {
        let mut rt = runtime();
        rt.set_numerics(numerics);
        let w = Param::new(&rt, &[128, 128, 3, 3], &w).unwrap();
        let bias = Param::new(&rt, &[128], &bias).unwrap();
        let graph = ConvolveGraph::builder().audit_every(2).build(&mut rt).unwrap();
        let mut all = Vec::new();
        for _ in 0..5 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[32, 128, 28, 28], &x).unwrap();
            all.push(step.read(&graph.call(&step, &x, &w).unwrap()).unwrap());
        }
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{numerics}");
        assert!(rt.stats().replays > 0 && rt.stats().audits > 0, "{:?}", rt.stats());
        let step = rt.step().unwrap();
        // Other strides of the input, and a bias.
        let config = ops::ConvConfig::new().padding(1);
        let x = channels_last(&step.tensor(&[32, 128, 28, 28], &x).unwrap()).unwrap();
        let biased = step.read(&ops::conv2d_bias(&x, &w, &bias, config).unwrap()).unwrap();
        (all.remove(0), biased)
    };
    let full = run(Numerics::default());
    for numerics in [Numerics::default().fourier(true), Numerics::default().fourier(true).deterministic(true)]
    {
        let transformed = run(numerics);
        let pairs = full.0.iter().zip(&transformed.0).chain(full.1.iter().zip(&transformed.1));
        let most = pairs
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |most, e| if e.is_nan() { f32::INFINITY } else { f32::max(most, e) });
        // Sums of 1152 terms whose squares are a ninth on average: their sizes are about 11, the largest 60.
        assert!(most < 1e-4, "{numerics}: {most:e}");
        assert!(most > 0.0 || without_library, "{numerics} changes nothing");
    }
    // A NaN, or a large number, stays in its image.
    let image = 128 * 28 * 28;
    for odd in [f32::NAN, 1e6] {
        let mut rt = runtime();
        rt.set_numerics(Numerics::default().fourier(true));
        let w = Param::new(&rt, &[128, 128, 3, 3], &w).unwrap();
        let step = rt.step().unwrap();
        let mut changed = x.clone();
        changed[5 * image + 1000] = odd;
        let run = |x: &[f32]| {
            let x = step.tensor(&[32, 128, 28, 28], x).unwrap();
            let config = ops::ConvConfig::new().padding(1);
            step.read(&ops::conv2d(&x, &w, config).unwrap()).unwrap()
        };
        let (plain, with) = (run(&x), run(&changed));
        let differ = |i: &usize| plain[i * image..(i + 1) * image] != with[i * image..(i + 1) * image];
        assert_eq!((0..32).filter(differ).collect::<Vec<_>>(), [5], "{odd}");
    }
    // One that TF32 concerns stays without a transform.
    let tf32 = Numerics::default().tf32(true);
    assert_eq!(run(tf32).0, run(tf32.fourier(true)).0);
}
