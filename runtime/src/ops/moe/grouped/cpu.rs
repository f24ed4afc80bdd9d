//! Products of groups of rows on the CPU: one after the other, each of which is spread over the threads.

use crate::{
    backend::{
        Launch,
        cpu::{
            Access,
            kernels::{
                float::{by_float, input},
                indices::values,
                real::{Real, Strided},
            },
        },
    },
    ops::matmul::product_on_cpu,
    value::layout::Layout,
};

/// [`GROUPED_MM`](super::operation::GROUPED_MM).
pub(super) fn grouped_mm(access: &Access<'_>, launch: &Launch) {
    by_float!(launch.inputs[0].dtype, real(access, launch));
}

fn real<T: Real>(access: &Access<'_>, launch: &Launch) {
    let (x, w) = (input::<T>(access, launch, 0), input::<T>(access, launch, 1));
    let mut rest = access.slice_mut::<T>(&launch.outputs[0]);
    let [rows, columns] = [0, 1].map(|axis| launch.outputs[0].layout.shape()[axis]);
    let mut first = 0;
    for (group, end) in values(access, &launch.inputs[2]).into_iter().enumerate() {
        let count = (end as usize).min(rows).saturating_sub(first);
        let (own, others) = rest.split_at_mut(count * columns);
        if let (Some(x), Some(w)) = (part(&x, first, Some(count)), part(&w, group, None)) {
            product_on_cpu(x, w, None, own);
        }
        (first, rest) = (first + count, others);
    }
    rest.fill(T::narrow(0.0));
}

/// Some of the slices along the first dimension, or the matrix at one of them; none of empty operands is needed.
fn part<'a, T: Real>(of: &Strided<'a, T>, first: usize, count: Option<usize>) -> Option<Strided<'a, T>> {
    let (shape, strides) = (of.layout.shape(), of.layout.strides());
    let data = of.data.get(first * strides[0]..).unwrap_or_default();
    let layout = match count {
        Some(0) => return None,
        Some(count) => of.layout.with_dim(0, count),
        None => Layout::strided(&shape[1..], &strides[1..]).ok()?,
    };
    Some(Strided { data, layout })
}
