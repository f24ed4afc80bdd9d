//! Normalisations along one axis: layer norm, RMS norm, L2, softmax.
//!
//! Each is a function of one row in f32; [`along_axis`] supplies rows of any stride and type.

use super::{
    float::{along_axis, by_float, exp, in_blocks, input, maximum, sum, vector},
    real::{Real, Strided, gather, offset_at},
};
use crate::backend::{Launch, cpu::Access};

#[cfg(test)]
mod tests;

/// `LayerNorm`.
pub(crate) fn layer_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, layer_norm_as(access, launch, eps));
}

/// `RmsNorm`.
pub(crate) fn rms_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, rms_norm_as(access, launch, eps));
}

/// `AddRmsNorm`.
pub(crate) fn add_rms_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, add_rms_norm_as(access, launch, eps));
}

/// `L2Normalize`.
pub(crate) fn l2_normalize(access: &Access<'_>, launch: &Launch, axis: usize, eps: f32) {
    by_float!(launch.inputs[0].dtype, l2_normalize_as(access, launch, axis, eps));
}

/// `Softmax`.
pub(crate) fn softmax(access: &Access<'_>, launch: &Launch, axis: usize, log: bool) {
    by_float!(launch.inputs[0].dtype, softmax_as(access, launch, axis, log));
}

fn layer_norm_as<T: Real>(access: &Access<'_>, launch: &Launch, eps: f32) {
    let x = input::<T>(access, launch, 0);
    let weight = vector(input::<T>(access, launch, 1));
    let bias = (launch.inputs.len() > 2).then(|| vector(input::<T>(access, launch, 2)));
    let axis = x.layout.rank() - 1;
    along_axis(x, axis, access.slice_mut::<T>(&launch.outputs[0]), |row| {
        layer_norm_row(row, &weight, bias.as_deref(), eps);
    });
}

fn rms_norm_as<T: Real>(access: &Access<'_>, launch: &Launch, eps: f32) {
    let x = input::<T>(access, launch, 0);
    let weight = vector(input::<T>(access, launch, 1));
    let axis = x.layout.rank() - 1;
    along_axis(x, axis, access.slice_mut::<T>(&launch.outputs[0]), |row| rms_norm_row(row, &weight, eps));
}

fn add_rms_norm_as<T: Real>(access: &Access<'_>, launch: &Launch, eps: f32) {
    let (x, added) = (input::<T>(access, launch, 0), input::<T>(access, launch, 1));
    let weight = vector(input::<T>(access, launch, 2));
    let axis = x.layout.rank() - 1;
    let n = x.layout.shape()[axis];
    let row_of = |view: &Strided<'_, T>, row: usize, to: &mut [f32]| {
        let (shape, strides) = (view.layout.shape(), view.layout.strides());
        gather(view.data, offset_at(row, &shape[..axis], &strides[..axis]), strides[axis], to);
    };
    let sum = access.slice_mut::<T>(&launch.outputs[0]);
    in_blocks(sum, n, 2 * n, |row, to, workspace| {
        let (a, b) = workspace.split_at_mut(n);
        row_of(&x, row, a);
        row_of(&added, row, b);
        a.iter_mut().zip(b).for_each(|(a, b)| *a += *b);
        T::store(a, to);
    });
    // Of the rounded sum, as two operations would.
    let sum = Strided { data: &*sum, layout: launch.outputs[0].layout };
    along_axis(sum, axis, access.slice_mut::<T>(&launch.outputs[1]), |row| rms_norm_row(row, &weight, eps));
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

fn layer_norm_row(row: &mut [f32], weight: &[f32], bias: Option<&[f32]>, eps: f32) {
    let n = row.len() as f32;
    let mean = sum(row, |v| v) / n;
    // A second pass instead of E[x²] - E[x]²: that difference cancels when the mean is large.
    let variance = sum(row, |v| (v - mean) * (v - mean)) / n;
    let factor = 1.0 / (variance + eps).sqrt();
    for (v, w) in row.iter_mut().zip(weight) {
        *v = (*v - mean) * factor * w;
    }
    for (v, b) in row.iter_mut().zip(bias.unwrap_or_default()) {
        *v += b;
    }
}

fn rms_norm_row(row: &mut [f32], weight: &[f32], eps: f32) {
    let factor = 1.0 / (sum(row, |v| v * v) / row.len() as f32 + eps).sqrt();
    for (v, w) in row.iter_mut().zip(weight) {
        *v = *v * factor * w;
    }
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
        *v = exp(*v - max);
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
    let log_total = sum(row, |v| exp(v - max)).ln();
    for v in row {
        *v = *v - max - log_total;
    }
}
