use rand::{SeedableRng, rngs::StdRng};

use super::*;
use crate::backend::cpu::kernels::{
    float::testing::check_all,
    real::testing::{floats, stable},
};

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
