//! Rows normalised on the CPU: each norm is a function of one row in f32.

use crate::backend::{
    Launch,
    cpu::{
        Access,
        kernels::{
            float::{along_axis, by_float, in_blocks, input, sum, vector},
            real::{Real, Strided, gather, offset_at},
        },
    },
};

#[cfg(test)]
mod tests;

/// `LayerNorm`.
pub(super) fn layer_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, layer_norm_as(access, launch, eps));
}

/// `RmsNorm`.
pub(super) fn rms_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, rms_norm_as(access, launch, eps));
}

/// `AddRmsNorm`.
pub(super) fn add_rms_norm(access: &Access<'_>, launch: &Launch, eps: f32) {
    by_float!(launch.inputs[0].dtype, add_rms_norm_as(access, launch, eps));
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
