//! Kernels that place elements without computing with them, and those that make them from nothing.

use bytemuck::Pod;
use smallvec::SmallVec;

use super::{
    scalar::{Scalar, with_scalar, with_word},
    strided::{BLOCK, Walk, blocks, chunks},
};
use crate::{
    DType,
    backend::{Launch, View, cpu::Access},
};

pub(crate) fn copy(access: &Access<'_>, launch: &Launch) {
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

impl Walk {
    /// Copies the elements from `start` on to the places that `to` shows of `dst`.
    pub(super) fn copy_strided<T: Pod>(&self, src: &[T], start: usize, to: &Walk, dst: &mut [T]) {
        let mut next = start;
        to.runs(0, to.count(), |offset, stride, n| {
            if stride == 1 || n == 1 {
                self.copy(src, next, &mut dst[offset..offset + n]);
            } else {
                let mut buf = [T::zeroed(); BLOCK];
                for first in (0..n).step_by(BLOCK) {
                    let buf = &mut buf[..BLOCK.min(n - first)];
                    self.copy(src, next + first, buf);
                    for (i, value) in buf.iter().enumerate() {
                        dst[offset + (first + i) * stride] = *value;
                    }
                }
            }
            next += n;
        });
    }
}

pub(crate) fn pad(access: &Access<'_>, launch: &Launch) {
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

pub(crate) fn fill(access: &Access<'_>, launch: &Launch, value: f64) {
    generate(access, &launch.outputs[0], |_| value);
}

pub(crate) fn arange(access: &Access<'_>, launch: &Launch, start: f64, step: f64) {
    generate(access, &launch.outputs[0], |i| start + i as f64 * step);
}

fn generate(access: &Access<'_>, y: &View, value: impl Fn(usize) -> f64 + Sync) {
    if y.dtype == DType::Bool {
        generate_as::<u8>(access, y, |i| u8::from(value(i) != 0.0));
    } else {
        with_scalar!(y.dtype, T => generate_as::<T>(access, y, |i| T::of_f64(value(i))));
    }
}

fn generate_as<T: Scalar>(access: &Access<'_>, y: &View, value: impl Fn(usize) -> T + Sync) {
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

pub(crate) fn concat(access: &Access<'_>, launch: &Launch, axis: usize) {
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
