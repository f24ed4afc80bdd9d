//! Functions of a row against the same in f64.

use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::along_axis;
use crate::backend::cpu::kernels::real::{
    Real,
    testing::{floats, near},
};

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

/// As [`check`], of every type.
pub(crate) fn check_all(bound: f64, row: impl Fn(&mut [f32]) + Sync, want: impl Fn(&[f64]) -> Vec<f64>) {
    check::<f32>(bound, &row, &want);
    check::<f16>(bound, &row, &want);
    check::<bf16>(bound, &row, &want);
}
