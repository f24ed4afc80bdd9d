//! Slices normalised on the CPU: each normalisation is a function of one slice in f32.

use crate::{
    backend::{
        Launch,
        cpu::{
            Access,
            kernels::{
                float::{along_axis, by_float, input, maximum, sum},
                real::Real,
            },
        },
    },
    kernel::exp::exp_of_negative,
};

#[cfg(test)]
mod tests;

/// `L2Normalize`.
pub(in super::super) fn l2_normalize(access: &Access<'_>, launch: &Launch, axis: usize, eps: f32) {
    by_float!(launch.inputs[0].dtype, l2_normalize_as(access, launch, axis, eps));
}

/// `Softmax`.
pub(in super::super) fn softmax(access: &Access<'_>, launch: &Launch, axis: usize, log: bool) {
    by_float!(launch.inputs[0].dtype, softmax_as(access, launch, axis, log));
}

fn l2_normalize_as<T: Real>(access: &Access<'_>, launch: &Launch, axis: usize, eps: f32) {
    let x = input::<T>(access, launch, 0);
    along_axis(x, axis, access.slice_mut::<T>(&launch.outputs[0]), |row| l2_normalize_row(row, eps));
}

fn softmax_as<T: Real>(access: &Access<'_>, launch: &Launch, axis: usize, log: bool) {
    let x = input::<T>(access, launch, 0);
    let row: fn(&mut [f32]) = if log { log_softmax_row } else { softmax_row };
    along_axis(x, axis, access.slice_mut::<T>(&launch.outputs[0]), row);
}

fn l2_normalize_row(row: &mut [f32], eps: f32) {
    let norm = sum(row, |v| v * v).sqrt();
    // Not `norm.max(eps)`: that would hide a NaN.
    let divisor = if norm < eps { eps } else { norm };
    for v in row {
        *v /= divisor;
    }
}

fn softmax_row(row: &mut [f32]) {
    let max = maximum(row);
    if max == f32::NEG_INFINITY {
        // Only -inf (which yields zeros) and NaN (which propagates).
        let fill = if row.iter().any(|v| v.is_nan()) { f32::NAN } else { 0.0 };
        row.fill(fill);
        return;
    }
    for v in row.iter_mut() {
        *v = exp_of_negative(*v - max);
    }
    let total = sum(row, |v| v);
    for v in row {
        *v /= total;
    }
}

fn log_softmax_row(row: &mut [f32]) {
    let max = maximum(row);
    if max == f32::NEG_INFINITY {
        let fill = if row.iter().any(|v| v.is_nan()) { f32::NAN } else { f32::NEG_INFINITY };
        row.fill(fill);
        return;
    }
    let log_total = sum(row, |v| exp_of_negative(v - max)).ln();
    for v in row {
        *v = *v - max - log_total;
    }
}
