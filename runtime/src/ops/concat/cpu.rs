//! Joined tensors on the CPU.

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::backend::{
    Launch, View,
    cpu::{
        Access,
        kernels::{
            scalar::with_word,
            strided::{Walk, blocks},
        },
    },
};

#[cfg(test)]
mod tests;

pub(super) fn concat(access: &Access<'_>, launch: &Launch, axis: usize) {
    let y = &launch.outputs[0];
    with_word!(y.dtype, T => concat_of::<T>(access, &launch.inputs, y, axis));
}

fn concat_of<T: Pod + Send + Sync>(access: &Access<'_>, inputs: &[View], y: &View, axis: usize) {
    let row_of = |view: &View| view.layout.shape()[axis..].iter().product::<usize>();
    let row_len = row_of(y);
    let mut end = 0;
    let parts: SmallVec<[_; 8]> = inputs
        .iter()
        .map(|x| {
            let len = row_of(x);
            end += len;
            (Walk::new(&x.layout), access.slice::<T>(x), len, end)
        })
        .collect();
    blocks(
        access.slice_mut::<T>(y),
        || (),
        |(), start, out| {
            let (mut row, mut column) = (start / row_len, start % row_len);
            let mut part = parts.partition_point(|&(.., end)| end <= column);
            let mut rest = out;
            while !rest.is_empty() {
                let (walk, src, len, end) = &parts[part];
                let n = rest.len().min(end - column);
                let (head, tail) = rest.split_at_mut(n);
                walk.copy(src, (row + 1) * len - (end - column), head);
                (rest, column, part) = (tail, column + n, part + 1);
                if column == row_len {
                    (row, column, part) = (row + 1, 0, 0);
                }
            }
        },
    );
}
