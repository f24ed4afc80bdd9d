use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::operation::{QuantizedEmbedding, QuantizedLinear};
use crate::{
    BlockFormat, DType, backend::cpu::kernels::testing::*, ops::gather::PickCounts,
    quantized::testing::blocks, value::layout::Layout,
};

/// Rows of random blocks, and their values.
fn weight(rng: &mut StdRng, format: BlockFormat, rows: usize, width: usize) -> (Array, Vec<f64>) {
    let bytes = blocks(rng, format, rows * width / format.elements());
    let mut values = vec![0.0; rows * width];
    format.dequantize_row(&bytes, &mut values);
    let layout = Layout::contiguous(&[rows, format.row_bytes(width).unwrap()]).unwrap();
    // Not at the start of the memory, as blocks of a mapped file are not.
    let array = Array { dtype: DType::U8, layout, before: 3, bytes: [&[9; 3][..], &bytes, &[9; 3]].concat() };
    (array, values.into_iter().map(f64::from).collect())
}

/// One row, as an input of its own.
fn row_of(x: &Array, row: usize) -> Array {
    let width = x.shape()[1];
    Array::contiguous(x.dtype, &[1, width], &x.values()[row * width..][..width])
}

/// Against the products with the values of the blocks, and each row bit by bit against the product of that row alone, on one
/// thread.
#[test]
fn products_of_every_format() {
    let mut rng = StdRng::seed_from_u64(1);
    for &format in BlockFormat::ALL {
        for case in 0..24 {
            let dtype = FLOATS[case % 3];
            // Several panels, several tasks, and nothing.
            let m = [1, 2, 3, 5, 66, 0][case % 6];
            let n = [1, 7, 70, 300][case % 4];
            let k = format.elements() * [1, 2, 3, 0][case / 6];
            let (w, values) = weight(&mut rng, format, n, k);
            let x = Array::random(&mut rng, dtype, &[m, k]);
            let bias = Array::random(&mut rng, dtype, &[n]);
            let op = || QuantizedLinear { format };
            let inputs = if case % 2 == 0 { vec![&x, &w, &bias] } else { vec![&x, &w] };
            if m == 0 {
                continue;
            }
            let mut y = Array::output(dtype, &[m, n]);
            run(op(), &inputs, &mut y).unwrap();
            let (got, xs, b) = (y.values(), x.values(), bias.values());
            let expected: Vec<f64> = (0..m * n)
                .map(|i| {
                    let products = (0..k).map(|l| xs[i / n * k + l] * values[i % n * k + l]);
                    products.sum::<f64>() + if case % 2 == 0 { b[i % n] } else { 0.0 }
                })
                .collect();
            let bound = |i: usize| -> f64 {
                let (x, w) = (&xs[i / n * k..][..k], &values[i % n * k..][..k]);
                let runs = x.chunks(32).zip(w.chunks(32));
                let of_run = |(x, w): (&[f64], &[f64])| {
                    let most = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                    most / 254.0 * w.iter().map(|w| w.abs()).sum::<f64>() + 0.02 * most
                };
                runs.map(of_run).sum::<f64>() * (1.0 + tolerance(dtype)) + 1e-6
            };
            assert_close(dtype, &got, &expected, bound, &format!("{format} {m} {k} {n}"));
            for row in 0..m {
                let alone = row_of(&x, row);
                let mut one = Array::output(dtype, &[1, n]);
                let mut inputs = inputs.clone();
                inputs[0] = &alone;
                run_single_threaded(op(), &inputs, &mut one).unwrap();
                assert_eq!(one.values(), got[row * n..][..n], "{format} {dtype} row {row} of {m}");
            }
        }
    }
}

#[test]
fn a_row_that_is_not_finite_spoils_no_other() {
    let mut rng = StdRng::seed_from_u64(2);
    for &format in BlockFormat::ALL {
        let k = 2 * format.elements();
        let (w, _) = weight(&mut rng, format, 9, k);
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut values = vec![1.5; 5 * k];
            values[2 * k + 7] = wrong;
            let x = Array::contiguous(DType::F32, &[5, k], &values);
            let mut y = Array::output(DType::F32, &[5, 9]);
            run(QuantizedLinear { format }, &[&x, &w], &mut y).unwrap();
            for (i, y) in y.values().iter().enumerate() {
                assert_eq!(y.is_nan(), i / 9 == 2, "{format} {wrong} {i}: {y}");
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
            let (table, values) = weight(&mut rng, format, rows, width);
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
