//! Rows and slices picked on the CPU.

use smallvec::SmallVec;

use super::operation::{Counts, Indices};
use crate::{
    backend::{
        Launch, View,
        cpu::{
            Access, Fault,
            kernels::{
                indices::{check, values},
                scalar::with_word,
                strided::{Walk, chunks},
            },
        },
    },
    base::rank::MAX_RANK,
};

#[cfg(test)]
mod tests;

pub(super) fn embedding(access: &Access<'_>, launch: &Launch, counts: Counts) -> Result<(), Fault> {
    pick(access, launch, Indices::new(launch, 0, counts), &launch.inputs[1], 0)
}

pub(super) fn gather(access: &Access<'_>, launch: &Launch, axis: usize, counts: Counts) -> Result<(), Fault> {
    pick(access, launch, Indices::new(launch, 1, counts), &launch.inputs[0], axis)
}

/// Picks slices of `x` by `indices`; returns the first real index that is out of range as a fault.
fn pick(
    access: &Access<'_>,
    launch: &Launch,
    indices: Indices<'_>,
    x: &View,
    axis: usize,
) -> Result<(), Fault> {
    picked(access, launch, indices, x.layout.shape()[axis], |index, rows| {
        copy_picked(access, index, x, axis, rows, &launch.outputs[0]);
    })
}

/// Calls `copy` with the indices and the number of rows that are there, of `rows`, and returns the first real index that is out
/// of range as a fault.
pub(in crate::ops) fn picked(
    access: &Access<'_>,
    launch: &Launch,
    indices: Indices<'_>,
    mut rows: usize,
    copy: impl FnOnce(&[u32], usize),
) -> Result<(), Fault> {
    // For each dimension of the index that has a count: the number of indices after it, its size, and the
    // count.
    let mut real: SmallVec<[(usize, usize, usize); MAX_RANK]> = SmallVec::new();
    let sizes = indices.view.layout.shape();
    for (place, view) in indices.counted() {
        let count = access.count(view);
        match sizes.get(place) {
            Some(&size) => real.push((sizes[place + 1..].iter().product(), size, count)),
            None => rows = rows.min(count),
        }
    }
    let mut index = values(access, indices.view);
    copy(&index, rows);
    let is_real = |k: usize| real.iter().all(|&(behind, size, count)| k / behind % size < count);
    let mut k = 0;
    index.retain(|_| {
        k += 1;
        is_real(k - 1)
    });
    check(launch, &index, rows)
}

/// Copies slices of `x` along `axis` to `y`; those from `rows` on are zeros.
fn copy_picked(access: &Access<'_>, index: &[u32], x: &View, axis: usize, rows: usize, y: &View) {
    let dims = || x.layout.shape().iter().copied().zip(x.layout.strides().iter().copied());
    let (outer, inner) = (Walk::of(dims().take(axis)), Walk::of(dims().skip(axis + 1)));
    let stride = x.layout.strides()[axis];
    let len = inner.count();
    if y.layout.count() == 0 {
        return;
    }
    // Single elements are picked in groups: a call for each would cost more than the element.
    let group = if outer.count() > 1 { index.len() } else { 1 };
    with_word!(x.dtype, T => {
        let src = access.slice::<T>(x);
        chunks(access.slice_mut::<T>(y), group * len, group * len, |g, out| {
            for (i, out) in out.chunks_mut(len).enumerate() {
                let place = g * group + i;
                match index[place % index.len()] as usize {
                    row if row < rows => {
                        let first = outer.offset(place / index.len()) + row * stride;
                        inner.copy(&src[first..], 0, out);
                    }
                    _ => out.fill(T::MIN),
                }
            }
        });
    });
}
