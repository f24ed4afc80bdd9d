//! Copies and padding on the CPU.

use crate::backend::{
    Launch,
    cpu::{
        Access,
        kernels::{
            scalar::with_word,
            strided::{Walk, blocks, chunks},
        },
    },
};

#[cfg(test)]
mod tests;

pub(super) fn copy(access: &Access<'_>, launch: &Launch) {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    if y.layout.count() == 0 {
        return;
    }
    with_word!(x.dtype, T => {
        let walk = Walk::new(&x.layout);
        let (src, dst) = (access.slice::<T>(x), access.slice_mut::<T>(y));
        if y.layout.is_contiguous() {
            return blocks(dst, || (), |(), start, out| walk.copy(src, start, out));
        }
        let to = Walk::new(&y.layout);
        match *to.dims() {
            // The outermost dimension cuts the memory into pieces that threads can own.
            [(_, stride), ref inner @ ..] if stride >= span(inner) && !inner.is_empty() => {
                let inner = Walk::of(inner.iter().copied());
                let n = inner.count();
                chunks(dst, stride, n, |i, dst| walk.copy_strided(src, i * n, &inner, dst));
            }
            _ => walk.copy_strided(src, 0, &to, dst),
        }
    });
}

/// Elements between the first and one past the last that `dims` touch.
fn span(dims: &[(usize, usize)]) -> usize {
    1 + dims.iter().map(|(size, stride)| (size - 1) * stride).sum::<usize>()
}

pub(super) fn pad(access: &Access<'_>, launch: &Launch) {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let (from, to) = (x.layout.shape(), y.layout.shape());
    // Rows end with the last dimension that grows, so that they are as long as possible.
    let Some(axis) = (0..to.len()).rev().find(|&i| from[i] != to[i]) else {
        return copy(access, launch);
    };
    let len = |shape: &[usize]| shape[axis..].iter().product::<usize>();
    let (len_x, len_y) = (len(from), len(to));
    if y.layout.count() == 0 {
        return;
    }
    with_word!(x.dtype, T => {
        let walk = Walk::new(&x.layout);
        let src = access.slice::<T>(x);
        chunks(access.slice_mut::<T>(y), len_y, len_y, |row, out| {
            let (head, tail) = out.split_at_mut(len_x);
            tail.fill(T::MIN);
            match row_in(row, &from[..axis], &to[..axis]) {
                Some(row) => walk.copy(src, row * len_x, head),
                None => head.fill(T::MIN),
            }
        });
    });
}

/// The row-major index in shape `from` of the element with index `row` in shape `to`, if it is there.
fn row_in(row: usize, from: &[usize], to: &[usize]) -> Option<usize> {
    let (mut rest, mut found, mut size) = (row, 0, 1);
    for (&from, &to) in from.iter().zip(to).rev() {
        let at = rest % to;
        rest /= to;
        if at >= from {
            return None;
        }
        found += at * size;
        size *= from;
    }
    Some(found)
}
