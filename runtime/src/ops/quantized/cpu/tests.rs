use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::{linear::QuantizedLinear, operation::QuantizedEmbedding};
use crate::{
    BlockFormat, DType, Numerics,
    backend::cpu::kernels::testing::*,
    ops::gather::PickCounts,
    quantized::testing::{blocks_of_scale, bound, sizes},
    value::layout::Layout,
};

/// Rows of random blocks.
struct Blocks {
    array: Array,
    /// Of each element.
    values: Vec<f64>,
    /// `|d q| + |m|` of each.
    sizes: Vec<f64>,
}

fn weight(rng: &mut StdRng, format: BlockFormat, rows: usize, width: usize) -> Blocks {
    let scale = [1e-4, 1e-2, 0.1][rng.random_range(0..3)];
    let bytes = blocks_of_scale(rng, format, rows * width / format.elements(), scale);
    let mut values = vec![0.0; rows * width];
    format.dequantize_row(&bytes, &mut values);
    let layout = Layout::contiguous(&[rows, format.row_bytes(width).unwrap()]).unwrap();
    let sizes = sizes(format, &bytes);
    // Not at the start of the memory, as blocks of a mapped file are not.
    let array = Array { dtype: DType::U8, layout, before: 3, bytes: [&[9; 3][..], &bytes, &[9; 3]].concat() };
    Blocks { array, values: values.into_iter().map(f64::from).collect(), sizes }
}

/// One row, as an input of its own.
fn row_of(x: &Array, row: usize) -> Array {
    let width = x.shape()[1];
    Array::contiguous(x.dtype, &[1, width], &x.values()[row * width..][..width])
}

/// Checks each `every`th row of a product against that with the values of the blocks; all of it bit by bit against the product on
/// one thread, and these rows against the products of that row alone.
fn check(
    rng: &mut StdRng,
    format: BlockFormat,
    dtype: DType,
    [m, k, n]: [usize; 3],
    biased: bool,
    every: usize,
) {
    let w = weight(rng, format, n, k);
    let x = Array::random(rng, dtype, &[m, k]);
    let bias = Array::random(rng, dtype, &[n]);
    let op = || QuantizedLinear::new(format, Numerics::default());
    let inputs = if biased { vec![&x, &w.array, &bias] } else { vec![&x, &w.array] };
    let what = format!("{format} {dtype} {m} {k} {n} {biased}");
    let (mut y, mut single) = (Array::output(dtype, &[m, n]), Array::output(dtype, &[m, n]));
    run(op(), &inputs, &mut y).unwrap();
    run_single_threaded(op(), &inputs, &mut single).unwrap();
    let bits = |y: &Array| y.values().into_iter().map(f64::to_bits).collect::<Vec<_>>();
    assert!(bits(&y) == bits(&single), "{what}: threads");
    let (got, xs, b) = (y.values(), x.values(), bias.values());
    for row in (0..m).step_by(every) {
        let x_row = &xs[row * k..][..k];
        let of = |of: &[f64], j: usize| of[j * k..][..k].to_vec();
        let expected: Vec<f64> = (0..n)
            .map(|j| {
                let products = x_row.iter().zip(&w.values[j * k..][..k]).map(|(x, w)| x * w);
                products.sum::<f64>() + if biased { b[j] } else { 0.0 }
            })
            .collect();
        let off = |j: usize| {
            let off = bound(format, x_row, &of(&w.values, j), &of(&w.sizes, j));
            // Adding the bias rounds, and what is off is rounded with the result.
            off * (1.0 + tolerance(dtype)) + f64::powi(2.0, -23) * expected[j].abs()
        };
        assert_close(dtype, &got[row * n..][..n], &expected, off, &what);
        let alone = row_of(&x, row);
        let mut one = Array::output(dtype, &[1, n]);
        let mut inputs = inputs.clone();
        inputs[0] = &alone;
        run_single_threaded(op(), &inputs, &mut one).unwrap();
        assert_eq!(bits(&one), bits(&y)[row * n..][..n], "{what} row {row}");
    }
}

#[test]
fn products_of_every_format() {
    let mut rng = StdRng::seed_from_u64(1);
    for &format in BlockFormat::ALL {
        for _ in 0..24 {
            // Several panels, several tasks, and no elements. Without rows, or columns, devices are not asked.
            let m = [1, 2, 3, 5, 66][rng.random_range(0..5)];
            let n = [1, 7, 70, 300][rng.random_range(0..4)];
            let k = format.elements() * rng.random_range(0..4);
            let dtype = FLOATS[rng.random_range(0..3)];
            let biased = rng.random();
            check(&mut rng, format, dtype, [m, k, n], biased, 1);
        }
    }
}

/// A panel whose activations are quantised on several threads and one that is not, and a single row on several.
#[test]
fn products_on_several_threads() {
    let mut rng = StdRng::seed_from_u64(4);
    for &format in BlockFormat::ALL {
        for shape in [[70, 1024, 300], [1, 4096, 300]] {
            let dtype = FLOATS[rng.random_range(0..3)];
            let biased = rng.random();
            check(&mut rng, format, dtype, shape, biased, 23);
        }
    }
}

#[test]
fn a_row_that_is_not_finite_spoils_no_other() {
    let mut rng = StdRng::seed_from_u64(2);
    for &format in BlockFormat::ALL {
        let k = 2 * format.elements();
        let w = weight(&mut rng, format, 9, k).array;
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut values = vec![1.5; 5 * k];
            values[2 * k + 7] = wrong;
            let x = Array::contiguous(DType::F32, &[5, k], &values);
            let mut y = Array::output(DType::F32, &[5, 9]);
            run(QuantizedLinear::new(format, Numerics::default()), &[&x, &w], &mut y).unwrap();
            for (i, y) in y.values().iter().enumerate() {
                // Floats are multiplied with an infinity as they are.
                let is_invalid = if format.has_floats() { !y.is_finite() } else { y.is_nan() };
                assert_eq!(is_invalid, i / 9 == 2, "{format} {wrong} {i}: {y}");
            }
        }
    }
}

#[test]
fn rows_of_every_format() {
    let mut rng = StdRng::seed_from_u64(3);
    for &format in BlockFormat::ALL {
        for case in 0..24 {
            let dtype = FLOATS[case % 3];
            let shape = random_shape(&mut rng, case % 4);
            let (rows, width) = (rng.random_range(0..9), format.elements() * rng.random_range(0..3));
            let ids = indices(&mut rng, &shape, rows, case % 2 == 0);
            let Blocks { array: table, values, .. } = weight(&mut rng, format, rows, width);
            let mut y = Array::output(dtype, &[&shape[..], &[width]].concat());
            let op = || QuantizedEmbedding { format, counts: PickCounts::NONE };
            let fault = run(op(), &[&ids, &table], &mut y);
            assert_fault(fault, op(), &ids.values(), rows);
            let of_row = |id: &f64| match *id as usize {
                id if id < rows => values[id * width..][..width].to_vec(),
                _ => vec![0.0; width],
            };
            let expected: Vec<f64> =
                ids.values().iter().flat_map(of_row).map(|value| nearest(dtype, value)).collect();
            assert_exact(&y.values(), &expected, &format!("{format} {dtype}"));
        }
    }
}
