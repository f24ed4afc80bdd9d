//! Weights in blocks, through the public interface.

mod loaded;
mod mapped;
mod mapped_floats;
mod saved;
mod written;

use std::ops::Range;

use graphable::{
    BlockFormat, DType, Error, Float, Mode, Param, ParamKind, ParamVisitor, Runtime, Schedule, Weight, bf16,
    f16, ops, prelude::*,
};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_same, cases, device, events, for_types, indices, input, is_shape, shape, size},
    reference::Array,
};

/// Whether the device is the CPU, which quantises activations.
fn is_cpu() -> bool {
    Runtime::new(device()).unwrap().device() == "cpu"
}

/// The bytes that a weight takes: a GPU fills up tiles of eight rows, and pairs of small blocks.
fn stored(format: BlockFormat, rows: usize, width: usize) -> u64 {
    let row = if is_cpu() { width } else { width.next_multiple_of(64) };
    let rows = if is_cpu() { rows } else { rows.next_multiple_of(8) };
    (rows * format.row_bytes(row).unwrap()) as u64
}

/// Where the numbers in half precision of a block are.
fn halves(format: BlockFormat) -> &'static [usize] {
    match format {
        BlockFormat::Q4_1 | BlockFormat::Q5_1 | BlockFormat::Q4_K | BlockFormat::Q5_K => &[0, 2],
        BlockFormat::Q2_K => &[80, 82],
        BlockFormat::Q3_K => &[108],
        BlockFormat::Q6_K => &[208],
        BlockFormat::F8_E4M3 => &[],
        _ => &[0],
    }
}

/// The bytes of a block that make its minimum, if it has one: without them, there is none.
fn minimum(format: BlockFormat) -> Range<usize> {
    match halves(format) {
        &[_, at] => at..at + 2,
        _ if format == BlockFormat::INT4 => 2..3,
        _ => 0..0,
    }
}

/// Rows of blocks of any bits, with scales of a usual size, and without NaN.
pub(crate) fn blocks(rng: &mut StdRng, format: BlockFormat, rows: usize, width: usize) -> Vec<u8> {
    let mut all: Vec<u8> = (0..rows * format.row_bytes(width).unwrap()).map(|_| rng.random()).collect();
    for block in all.chunks_exact_mut(format.bytes()) {
        for &at in halves(format) {
            let scale = f16::from_f32(rng.random_range(-0.05..0.05));
            block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
        if format == BlockFormat::F8_E4M3 {
            let scale: f32 = rng.random_range(-0.01..0.01);
            block[..4].copy_from_slice(&scale.to_le_bytes());
            block[4..].iter_mut().filter(|bits| **bits & 0x7f == 0x7f).for_each(|bits| *bits ^= 1);
        }
    }
    all
}

/// The values of blocks.
fn values(format: BlockFormat, blocks: &[u8], rows: usize, width: usize) -> Array {
    let mut values = vec![0.0; rows * width];
    format.dequantize(blocks, &mut values).unwrap();
    Array { shape: vec![rows, width], data: values.into_iter().map(f64::from).collect() }
}

/// A weight of random blocks, and its values.
fn weight<T: Float>(
    rt: &Runtime,
    rng: &mut StdRng,
    format: BlockFormat,
    rows: usize,
    width: usize,
) -> (Weight<T>, Array) {
    let blocks = blocks(rng, format, rows, width);
    let host = values(format, &blocks, rows, width);
    (Weight::blocks(rt, &[rows, width], format, blocks).unwrap(), host)
}

pub(crate) fn format(rng: &mut StdRng) -> BlockFormat {
    BlockFormat::ALL[rng.random_range(0..BlockFormat::ALL.len())]
}

/// `|d q| + |m|` of each element: what is rounded before the two are subtracted.
fn rounded(format: BlockFormat, blocks: &[u8], rows: usize, width: usize) -> Array {
    let all = values(format, blocks, rows, width);
    let mut scaled = blocks.to_vec();
    for block in scaled.chunks_exact_mut(format.bytes()) {
        block[minimum(format)].fill(0);
    }
    let mut sizes = values(format, &scaled, rows, width);
    for (size, w) in sizes.data.iter_mut().zip(&all.data) {
        *size = size.abs() + (*size - w).abs();
    }
    sizes
}

/// What a product with `m` rows on the CPU, or on a GPU, may be off by before it is rounded to the element type, of which `unit` is half a
/// unit in the last place of 1: docs/ACCURACY.md. Whether activations are quantised depends on the device and the format.
fn bound([cpu, quantised]: [bool; 2], m: usize, unit: f64, x: &[f64], w: &[f64], rounded: &[f64]) -> f64 {
    let ulp = (-24.0f64).exp2();
    if !cpu && m > 16 {
        // The values of the weight are rounded, and sums are in any order.
        let sizes = x.iter().zip(w).map(|(x, w)| (x * w).abs()).sum::<f64>();
        let tiny = x.iter().map(|x| x.abs()).sum::<f64>() * (-25.0f64).exp2();
        let of_weights = if unit > ulp { unit * sizes + tiny } else { 0.0 };
        return of_weights
            + (x.len() as f64 + 2.0) * ulp * sizes * (1.0 + unit)
            + 2.0 * ulp * rounding(x, rounded);
    }
    let sums = (x.len() as f64 / 64.0 + 20.0) * ulp;
    let mut bound = 0.0;
    for ((x, w), rounded) in x.chunks(32).zip(w.chunks(32)).zip(rounded.chunks(32)) {
        let most = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if quantised {
            bound += most / 254.0 * w.iter().map(|w| w.abs()).sum::<f64>();
        }
        bound += sums * most * rounded.iter().sum::<f64>();
    }
    bound
}

/// What rounding the two parts of each value is multiplied with.
fn rounding(x: &[f64], rounded: &[f64]) -> f64 {
    x.iter().zip(rounded).map(|(x, rounded)| x.abs() * rounded).sum()
}

fn linears<T: Float>() {
    let unit = match T::DTYPE {
        DType::F16 => (-11.0f64).exp2(),
        DType::Bf16 => (-8.0f64).exp2(),
        _ => (-24.0f64).exp2(),
    };
    let mut rt = Runtime::new(device()).unwrap();
    let cpu = rt.device() == "cpu";
    for seed in 0..60 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let format = format(rng);
        // Mostly short rows; now and then such that all warps of a GPU's block have a share, and such that more warps have one.
        let shortest = [0usize, 2000, 4097][[0, 0, 1, 0, 2][seed as usize % 5]];
        let (k, n) =
            (format.elements() * (shortest.div_ceil(format.elements()) + rng.random_range(0..4)), size(rng));
        let bytes = blocks(rng, format, n, k);
        let (hw, rounded) = (values(format, &bytes, n, k), rounded(format, &bytes, n, k));
        let w = Weight::<T>::blocks(&rt, &[n, k], format, bytes).unwrap();
        // Now and then more rows than are few.
        let mut dims = if seed % 4 == 0 { vec![rng.random_range(14..40)] } else { shape(rng, 0, 3) };
        let m: usize = dims.iter().product();
        dims.push(k);
        let step = rt.step().unwrap();
        let (x, hx) = input::<T>(&step, rng, &dims, (-3.0, 3.0));
        let (b, hb) = input::<T>(&step, rng, &[n], (-3.0, 3.0));
        let plain = ops::linear(&x, &w).unwrap();
        let biased = ops::linear_bias(&x, &&w, &b).unwrap();
        *dims.last_mut().unwrap() = n;
        assert_eq!(plain.shape(), dims);
        assert_eq!(biased.shape(), dims);
        let (plain, biased) = (step.read(&plain).unwrap(), step.read(&biased).unwrap());
        for (i, (plain, biased)) in plain.iter().zip(&biased).enumerate() {
            let x = &hx.data[i / n * k..][..k];
            let row = |of: &[f64]| of[i % n * k..][..k].to_vec();
            let w = row(&hw.data);
            let product: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
            let quantised = cpu && format != BlockFormat::F8_E4M3;
            let off_by = bound([cpu, quantised], m, unit, x, &w, &row(&rounded.data));
            for (got, exact) in [(plain, product), (biased, product + hb.data[i % n])] {
                // Half a unit in the last place, also of what is off, and of the smallest numbers of f16.
                let bound = off_by + (off_by + exact.abs()) * unit + 3e-8;
                let off = (got.to_f64() - exact).abs();
                assert!(off <= bound, "{seed} {format} [{i}]: {got:?} {exact} off by {off} of {bound}");
            }
        }
    }
}

#[test]
fn products_are_those_of_the_values() {
    for_types!(linears: f32, f16, bf16);
}

fn lookups<T: Float>() {
    let mut rt = Runtime::new(device()).unwrap();
    for seed in 0..60 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let format = format(rng);
        let (rows, width) = (rng.random_range(1..9), format.elements() * rng.random_range(0..3));
        let (table, values) = weight::<T>(&rt, rng, format, rows, width);
        let step = rt.step().unwrap();
        let dims = shape(rng, 0, 3);
        let (ids, hi) = indices(&step, rng, &dims, rows as u32);
        let want = Array::from_fn(&[&dims[..], &[width]].concat(), |i| {
            let (&column, id) = i.split_last().unwrap();
            // A float that was made from an f32 is rounded once.
            T::from_f64(values.at(&[hi.at(id) as usize, column])).to_f64()
        });
        assert_same(&step, &ops::embedding(&ids, &table).unwrap(), &want);
    }
}

#[test]
fn rows_are_those_of_the_values() {
    for_types!(lookups: f32, f16, bf16);
}

#[test]
fn an_id_out_of_range_is_reported_and_reads_as_zeros() {
    let mut rt = Runtime::new(device()).unwrap();
    let (table, _) = weight::<f32>(&rt, &mut StdRng::seed_from_u64(1), BlockFormat::Q4_K, 3, 256);
    let step = rt.step().unwrap();
    let ids = step.tensor(&[2], &[3u32, 1]).unwrap();
    let rows = ops::embedding(&ids, &table).unwrap();
    let fault = step.read(&rows);
    assert!(
        matches!(fault, Err(Error::IndexOutOfRange { op: "embedding", index: 3, bound: 3 })),
        "{fault:?}"
    );
    let values = step.read(&rows).unwrap();
    assert!(values[..256].iter().all(|v| *v == 0.0) && values[256..].iter().any(|v| *v != 0.0));
}

#[test]
fn a_weight_of_floats_is_a_parameter() {
    let mut rt = Runtime::new(device()).unwrap();
    let param = Param::new(&rt, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let weight = Weight::from(param.clone());
    assert_eq!((weight.shape(), weight.format(), weight.bytes()), (&[3, 2][..], None, 24));
    assert_eq!(weight.param().unwrap().shape(), [3, 2]);
    assert_eq!(format!("{weight:?}"), format!("{param:?}").replace("Param", "Weight"));
    let ids = {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1, 2], &[1.0f32, 0.5]).unwrap();
        let (a, b) = (ops::linear(&x, &weight).unwrap(), ops::linear(&x, &param).unwrap());
        assert_eq!(step.read(&a).unwrap(), step.read(&b).unwrap());
        let ids = step.tensor(&[2], &[2u32, 0]).unwrap();
        step.read(&ops::embedding(&ids, &weight).unwrap()).unwrap()
    };
    assert_eq!(ids, [5.0, 6.0, 1.0, 2.0]);
    // Integers multiply, too.
    let weight = Weight::from(Param::new(&rt, &[1, 2], &[3i32, 4]).unwrap());
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[10i32, 1]).unwrap();
    assert_eq!(step.read(&ops::linear(&x, &weight).unwrap()).unwrap(), [34]);
}

#[test]
fn weights_that_do_not_fit_are_errors() {
    let rt = Runtime::new(device()).unwrap();
    let make =
        |shape: &[usize], bytes: usize| Weight::<f32>::blocks(&rt, shape, BlockFormat::Q4_K, vec![0; bytes]);
    let reason = |result: Result<Weight<f32>>| match result {
        Err(Error::Argument { op: "Weight::blocks", reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(make(&[256], 144)).contains("two dimensions"));
    assert!(reason(make(&[1, 1, 256], 144)).contains("two dimensions"));
    assert!(reason(make(&[], 0)).contains("two dimensions"));
    assert!(reason(make(&[2, 128], 144)).contains("which the 256 elements of a block of Q4_K do not divide"));
    assert!(reason(make(&[2, 256], 287)).contains("[2, 256] in Q4_K takes 288 bytes, not 287"));
    assert!(reason(make(&[2, 256], 0)).contains("not 0"));
    assert!(matches!(make(&[usize::MAX, 256], 288), Err(Error::TooLarge { .. })));
    assert!(matches!(make(&[1 << 40, 1 << 40], 288), Err(Error::TooLarge { .. })));
    // Without rows, or without elements.
    for shape in [[0, 256], [2, 0], [0, 0]] {
        let weight = make(&shape, 0).unwrap();
        assert_eq!((weight.shape(), weight.bytes()), (&shape[..], 0));
    }
}

#[test]
fn operands_that_do_not_fit_are_errors() {
    cases(1, |step, rng| {
        let other = Runtime::new(device()).unwrap();
        let (foreign, _) = weight::<f32>(&other, rng, BlockFormat::Q8_0, 2, 32);
        let x = step.tensor(&[1, 32], &[0.0f32; 32]).unwrap();
        assert!(matches!(ops::linear(&x, &foreign), Err(Error::DifferentRuntimes { op: "linear" })));
        let ids = step.tensor(&[1], &[0u32]).unwrap();
        assert!(matches!(ops::embedding(&ids, &foreign), Err(Error::DifferentRuntimes { op: "embedding" })));
    });
    let mut rt = Runtime::new(device()).unwrap();
    let (w, _) = weight::<f32>(&rt, &mut StdRng::seed_from_u64(1), BlockFormat::Q8_0, 2, 32);
    let step = rt.step().unwrap();
    let wide = step.tensor(&[1, 64], &[0.0f32; 64]).unwrap();
    assert!(is_shape(ops::linear(&wide, &w)));
    let error = ops::linear(&wide, &w).unwrap_err().to_string();
    assert!(error.contains("of the input is 64, of the weight 32") && error.contains("[2, 32]"), "{error}");
    assert!(is_shape(ops::linear(&step.tensor(&[], &[1.0f32]).unwrap(), &w)));
    let x = step.tensor(&[1, 32], &[0.0f32; 32]).unwrap();
    for shape in [&[3][..], &[1], &[1, 2], &[]] {
        let bias = step.tensor(shape, &vec![0.0f32; shape.iter().product()]).unwrap();
        assert!(is_shape(ops::linear_bias(&x, &w, &bias)), "{shape:?}");
    }
    let ids = step.tensor(&[1; 6], &[0u32]).unwrap();
    assert!(matches!(ops::embedding(&ids, &w), Err(Error::Rank { .. })));
}

#[derive(Params)]
struct Layer {
    first: Weight<f32>,
    second: Weight<f32>,
    table: Weight<f32>,
}

#[graphable]
fn forward(
    layer: &Layer,
    #[dims(B, W)] x: &Tensor<f32>,
    #[dims(B)] ids: &Tensor<u32>,
) -> Result<Tensor<f32>> {
    let h = ops::silu(&ops::linear(x, &layer.first)?)?;
    let h = ops::add(&h, &ops::embedding(ids, &layer.table)?)?;
    ops::linear(&h, &layer.second)
}

/// As wide as two blocks, and then as one.
fn layer(rt: &Runtime, rng: &mut StdRng, format: BlockFormat) -> Layer {
    let width = format.elements();
    Layer {
        first: weight(rt, rng, format, width, 2 * width).0,
        second: weight(rt, rng, format, 5, width).0,
        table: weight(rt, rng, BlockFormat::Q4_0, 7, width).0,
    }
}

/// Rows of a product have the bits that they have alone, so modes, buckets and audits agree bit by bit.
#[test]
fn modes_and_buckets_have_the_same_bits() {
    for (case, &format) in BlockFormat::ALL.iter().enumerate() {
        let width = 2 * format.elements();
        let run = |mode: Mode, bucketed: bool| {
            let rng = &mut StdRng::seed_from_u64(case as u64);
            let mut rt = Runtime::new(device()).unwrap();
            let layer = layer(&rt, rng, format);
            let builder = ForwardGraph::builder().mode(mode).audit_every(2);
            let schedule = Schedule::new([2, 4, 9]);
            let builder = if bucketed { builder.bucket("B", schedule) } else { builder };
            let graph = builder.build(&mut rt).unwrap();
            let mut all = Vec::new();
            for round in 0..12 {
                let b = [1, 3, 8, 2][round % 4];
                let x: Vec<f32> = (0..b * width).map(|_| rng.random_range(-1.0..1.0)).collect();
                let ids: Vec<u32> = (0..b).map(|_| rng.random_range(0..7)).collect();
                let step = rt.step().unwrap();
                let (x, ids) = (step.tensor(&[b, width], &x).unwrap(), step.tensor(&[b], &ids).unwrap());
                let y = graph.call(&step, &layer, &x, &ids).unwrap();
                all.push(step.read(&y).unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>());
            }
            all
        };
        let plain = run(Mode::None, false);
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            for bucketed in [false, true] {
                assert_eq!(run(mode, bucketed), plain, "{format} {mode:?} {bucketed}");
            }
        }
    }
}

/// Another weight is another key: of another format, too, and of floats.
#[test]
fn another_weight_is_another_key() {
    let mut rt = Runtime::new(device()).unwrap();
    rt.keep_events(true);
    let graph = ForwardGraph::builder().build(&mut rt).unwrap();
    let mut layer = layer(&rt, &mut StdRng::seed_from_u64(1), BlockFormat::Q4_0);
    let call = |rt: &mut Runtime, layer: &Layer| {
        let y = {
            let step = rt.step().unwrap();
            let (x, ids) =
                (step.tensor(&[1, 64], &[1.0f32; 64]).unwrap(), step.tensor(&[1], &[0u32]).unwrap());
            let y = graph.call(&step, layer, &x, &ids).unwrap();
            step.read(&y).unwrap()
        };
        (events(rt), y)
    };
    let seen: String = (0..3).map(|_| call(&mut rt, &layer).0).collect();
    assert_eq!(seen, "wrp");
    let before = call(&mut rt, &layer).1;
    // The same bytes, in a format of blocks of the same size.
    let same = blocks(&mut StdRng::seed_from_u64(9), BlockFormat::Q4_0, 5, 32);
    for format in [BlockFormat::Q4_0, BlockFormat::IQ4_NL] {
        layer.second = Weight::blocks(&rt, &[5, 32], format, same.clone()).unwrap();
        let (seen, y) = call(&mut rt, &layer);
        assert_ne!(seen, "p", "{format}");
        assert_ne!(y, before);
        assert!(call(&mut rt, &layer).0.ends_with(['r', 'p']));
        assert_eq!(call(&mut rt, &layer), ("p".into(), y), "{format}");
    }
    layer.second = Param::new(&rt, &[5, 32], &[0.0f32; 160]).unwrap().into();
    for _ in 0..3 {
        assert_eq!(call(&mut rt, &layer).1, [0.0; 5]);
    }
}

#[test]
fn weights_are_listed_with_their_bytes() {
    let mut rt = Runtime::new(device()).unwrap();
    let first = layer(&rt, &mut StdRng::seed_from_u64(1), BlockFormat::Q8_0).first;
    let tied = Layer { second: first.clone(), table: Param::zeros(&rt, &[1, 2]).unwrap().into(), first };
    let listed = ParamVisitor::list(&tied);
    let shown: Vec<_> =
        listed.iter().map(|p| (&p.path[..], p.kind, p.dtype, p.format, &p.shape[..], p.bytes)).collect();
    assert_eq!(
        shown,
        [
            ("first", ParamKind::Param, DType::F32, Some(BlockFormat::Q8_0), &[32, 64][..], 32 * 68),
            ("second", ParamKind::Param, DType::F32, Some(BlockFormat::Q8_0), &[32, 64][..], 32 * 68),
            ("table", ParamKind::Param, DType::F32, None, &[1, 2][..], 8),
        ]
    );
    assert_eq!(listed[0].id, listed[1].id);
    assert_eq!(ParamVisitor::bytes(&tied), 32 * 68 + 8);
    // A step frees what was dropped.
    rt.step().unwrap();
    assert_eq!(rt.memory().owned_bytes, 32 * 68 + 8);
    assert_eq!(format!("{:?}", tied.first), "Weight<f32>[32, 64] in Q8_0");
}

#[graphable]
fn padded_width(w: &Weight<f32>, #[dims(1, D)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::linear(x, w)
}

#[graphable]
fn padded_bias(w: &Weight<f32>, x: &Tensor<f32>, #[dims(D)] b: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::linear_bias(x, w, b)
}

#[test]
fn padding_that_would_mix_is_refused() {
    let mut rt = Runtime::new(device()).unwrap();
    let (w, _) = weight::<f32>(&rt, &mut StdRng::seed_from_u64(1), BlockFormat::Q8_0, 32, 32);
    let schedule = || Schedule::new([32]);
    let width = PaddedWidthGraph::builder().bucket("D", schedule()).build(&mut rt).unwrap();
    let bias = PaddedBiasGraph::builder().bucket("D", schedule()).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[1, 32], &[0.0f32; 32]).unwrap();
    let b = step.tensor(&[32], &[0.0f32; 32]).unwrap();
    let refused = width.call(&step, &w, &x);
    assert!(matches!(refused, Err(Error::PaddedMix { op: "linear", axis: 1, .. })), "{refused:?}");
    let refused = bias.call(&step, &w, &x, &b);
    assert!(matches!(refused, Err(Error::PaddedMix { op: "linear_bias", .. })), "{refused:?}");
}
