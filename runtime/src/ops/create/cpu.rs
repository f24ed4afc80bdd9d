//! Tensors made from numbers on the CPU.

use bytemuck::Pod;

use crate::{
    DType,
    backend::{
        Launch, View,
        cpu::{
            Access,
            kernels::{
                scalar::{Scalar, with_scalar, with_word},
                strided::blocks,
            },
        },
    },
};

#[cfg(test)]
mod tests;

pub(super) fn fill(access: &Access<'_>, launch: &Launch, bits: u64) {
    let y = &launch.outputs[0];
    with_word!(y.dtype, T => generate_as::<T>(access, y, |_| bits as T));
}

pub(super) fn arange(access: &Access<'_>, launch: &Launch, start: f64, step: f64) {
    generate(access, &launch.outputs[0], |i| start + i as f64 * step);
}

fn generate(access: &Access<'_>, y: &View, value: impl Fn(usize) -> f64 + Sync) {
    if y.dtype == DType::Bool {
        generate_as::<u8>(access, y, |i| u8::from(value(i) != 0.0));
    } else {
        with_scalar!(y.dtype, T => generate_as::<T>(access, y, |i| T::of_f64(value(i))));
    }
}

fn generate_as<T: Pod + Send + Sync>(access: &Access<'_>, y: &View, value: impl Fn(usize) -> T + Sync) {
    blocks(
        access.slice_mut::<T>(y),
        || (),
        |(), start, out| {
            for (i, y) in out.iter_mut().enumerate() {
                *y = value(start + i);
            }
        },
    );
}
