use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::backend::cpu::kernels::real::testing::{floats, near, stable};

/// Runs `row` over views of `T` and compares with `want`, which maps a row in f64.
fn check<T: Real>(bound: f64, row: impl Fn(&mut [f32]) + Sync, want: impl Fn(&[f64]) -> Vec<f64>) {
    let mut rng = StdRng::seed_from_u64(4);
    for shape in [&[7][..], &[1, 1], &[3, 40], &[2, 3, 100], &[5, 4, 3, 2], &[600, 70], &[0, 3], &[2, 0]] {
        for axis in 0..shape.len() {
            let repeated: &[usize] = if rng.random() { &[0] } else { &[] };
            let x = floats::<T>(&mut rng, shape, repeated);
            let mut out = vec![T::narrow(f32::NAN); x.layout.count()];
            along_axis(x.view(), axis, &mut out, &row);
            let inner: usize = shape[axis + 1..].iter().product();
            for first in (0..out.len()).filter(|i| (i / inner).is_multiple_of(shape[axis])) {
                let strides = crate::value::layout::Layout::contiguous(shape).unwrap();
                let index = |linear: usize| -> Vec<usize> {
                    shape.iter().zip(strides.strides()).map(|(n, s)| linear / s % n).collect()
                };
                let values: Vec<f64> =
                    (0..shape[axis]).map(|j| f64::from(x.at(&index(first + j * inner)).widen())).collect();
                for (j, want) in want(&values).into_iter().enumerate() {
                    near(out[first + j * inner], want, bound, (shape, axis, first, j));
                }
            }
        }
    }
}

fn check_all(bound: f64, row: impl Fn(&mut [f32]) + Sync, want: impl Fn(&[f64]) -> Vec<f64>) {
    check::<f32>(bound, &row, &want);
    check::<f16>(bound, &row, &want);
    check::<bf16>(bound, &row, &want);
}

#[test]
fn layer_norm_is_right() {
    let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
    let bias: Vec<f32> = (0..600).map(|i| i as f32 / 300.0 - 1.0).collect();
    check_all(
        2e-5,
        |row| layer_norm_row(row, &weight, Some(&bias), 1e-3),
        |row| {
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            let part = |i: usize| f64::from(weight[i]) / (variance + 1e-3).sqrt();
            row.iter().enumerate().map(|(i, v)| (v - mean) * part(i) + f64::from(bias[i])).collect()
        },
    );
}

#[test]
fn layer_norm_keeps_a_small_variance_beside_a_large_mean() {
    let mut row: Vec<f32> = (0..64).map(|i| 4096.0 + (i % 2) as f32).collect();
    layer_norm_row(&mut row, &[1.0; 64], None, 0.0);
    assert!(row.iter().enumerate().all(|(i, v)| (v.abs() - 1.0).abs() < 1e-5 && (*v > 0.0) == (i % 2 == 1)));
}

#[test]
fn rms_norm_is_right() {
    let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
    check_all(
        1e-5,
        |row| rms_norm_row(row, &weight, 1e-3),
        |row| {
            let square = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
            row.iter().zip(&weight).map(|(v, &w)| v * f64::from(w) / (square + 1e-3).sqrt()).collect()
        },
    );
}

#[test]
fn l2_normalize_is_right() {
    let want = |row: &[f64]| {
        let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(0.8);
        row.iter().map(|v| v / norm).collect()
    };
    check_all(1e-6, |row| l2_normalize_row(row, 0.8), want);
    let mut row = [0.0, 0.0];
    l2_normalize_row(&mut row, 1e-12);
    assert_eq!(row, [0.0, 0.0]);
}

#[test]
fn softmax_is_right() {
    let scale = 30.0;
    let log_total = |row: &[f64]| row.iter().map(|v| (v * scale).exp()).sum::<f64>().ln();
    let scaled = |row: &mut [f32]| row.iter_mut().for_each(|v| *v *= scale as f32);
    check_all(
        4e-6,
        |row| {
            scaled(row);
            softmax_row(row);
        },
        |row| row.iter().map(|v| (v * scale - log_total(row)).exp()).collect(),
    );
    check_all(
        1e-5,
        |row| {
            scaled(row);
            log_softmax_row(row);
        },
        |row| row.iter().map(|v| v * scale - log_total(row)).collect(),
    );
}

#[test]
fn softmax_of_what_is_not_finite() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let run = |f: fn(&mut [f32]), mut row: Vec<f32>| {
        f(&mut row);
        row
    };
    assert_eq!(run(softmax_row, vec![-inf, -inf]), [0.0, 0.0]);
    assert_eq!(run(log_softmax_row, vec![-inf, -inf]), [-inf, -inf]);
    assert_eq!(run(softmax_row, vec![-inf, 3.0, -inf]), [0.0, 1.0, 0.0]);
    assert_eq!(run(log_softmax_row, vec![-inf, 3.0]), [-inf, 0.0]);
    for f in [softmax_row, log_softmax_row] {
        for row in [vec![nan, 1.0], vec![-inf, nan], vec![inf, 0.0, inf]] {
            assert!(run(f, row).iter().any(|v| v.is_nan()));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads_or_addresses() {
    let mut rng = StdRng::seed_from_u64(5);
    let x = floats::<f32>(&mut rng, &[30, 50, 45], &[]);
    for axis in 0..3 {
        stable(|shift| {
            let mut out = vec![0.0; x.layout.count() + shift];
            along_axis(x.moved(shift).view(), axis, &mut out[shift..], softmax_row);
            out.split_off(shift)
        });
    }
}
