//! Reading strided views in row-major order, and splitting work over threads.
//!
//! Kernels compute blocks of [`BLOCK`] elements. The elements of an operand in a block are borrowed if they
//! are contiguous, and otherwise gathered into a small buffer, so every kernel has one inner loop, over
//! slices. Blocks do not depend on the number of threads, and neither do results.

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::scalar::Scalar;
use crate::{base::rank::MAX_RANK, value::layout::Layout};

/// Elements computed at once; two f32 operands and a result stay in the first-level cache.
pub(crate) const BLOCK: usize = 512;

/// Elements from which work is split over threads; below, waking them costs more than it saves.
pub(crate) const PARALLEL: usize = 32 * 1024;

/// Elements of one task.
pub(crate) const TASK: usize = 16 * BLOCK;

/// A layout with unit dimensions dropped and mergeable neighbours merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    rank: usize,
    /// `(size, stride)`, outermost first.
    dims: [(usize, usize); MAX_RANK],
    count: usize,
}

impl Walk {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self::of(layout.shape().iter().copied().zip(layout.strides().iter().copied()))
    }

    /// The walk over contiguous elements.
    pub(crate) fn flat(count: usize) -> Self {
        let mut dims = [(1, 0); MAX_RANK];
        dims[0] = (count, 1);
        Self { rank: 1, dims, count }
    }

    /// The walk over `(size, stride)` pairs, outermost first; at most [`MAX_RANK`] of them.
    pub(crate) fn of(dims: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut walk = Self { rank: 0, dims: [(1, 0); MAX_RANK], count: 1 };
        for (size, stride) in dims {
            walk.count *= size;
            match walk.dims[..walk.rank].last_mut() {
                _ if size == 1 => {}
                Some(outer) if outer.1 == size * stride => *outer = (outer.0 * size, stride),
                _ => {
                    walk.dims[walk.rank] = (size, stride);
                    walk.rank += 1;
                }
            }
        }
        walk
    }

    /// The walk over all dimensions of `layout` but `axis`.
    pub(crate) fn without(layout: &Layout, axis: usize) -> Self {
        let dims = layout.shape().iter().copied().zip(layout.strides().iter().copied());
        Self::of(dims.enumerate().filter(|&(i, _)| i != axis).map(|(_, dim)| dim))
    }

    /// Number of elements.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Merged dimensions, outermost first.
    pub(crate) fn dims(&self) -> &[(usize, usize)] {
        &self.dims[..self.rank]
    }

    /// Offset of the element with this row-major index.
    pub(crate) fn offset(&self, index: usize) -> usize {
        if let [(_, stride)] = *self.dims() {
            return index * stride;
        }
        let mut rest = index;
        let mut offset = 0;
        for &(size, stride) in self.dims().iter().rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }

    /// Returns whether the elements are contiguous.
    pub(crate) fn is_flat(&self) -> bool {
        matches!(*self.dims(), [] | [(_, 1)])
    }

    /// Returns whether all elements are the same one.
    pub(crate) fn is_one(&self) -> bool {
        matches!(*self.dims(), [] | [(_, 0)])
    }

    /// Calls `run(offset, stride, len)` for each evenly spaced piece of the elements
    /// `start .. start + len`, in order.
    pub(crate) fn runs(&self, start: usize, len: usize, mut run: impl FnMut(usize, usize, usize)) {
        if len == 0 {
            return;
        }
        let Some((&(inner, stride), outer)) = self.dims().split_last() else {
            return run(0, 0, len);
        };
        let mut index = [0; MAX_RANK];
        let mut rest = start / inner;
        let mut base = 0;
        for (at, &(size, stride)) in index.iter_mut().zip(outer).rev() {
            *at = rest % size;
            rest /= size;
            base += *at * stride;
        }
        let (mut first, mut left) = (start % inner, len);
        loop {
            let n = left.min(inner - first);
            run(base + first * stride, stride, n);
            left -= n;
            if left == 0 {
                return;
            }
            first = 0;
            for (at, &(size, stride)) in index.iter_mut().zip(outer).rev() {
                *at += 1;
                base += stride;
                if *at < size {
                    break;
                }
                base -= size * stride;
                *at = 0;
            }
        }
    }

    /// Copies the elements from `start` on into `dst`.
    pub(crate) fn copy<T: Copy>(&self, src: &[T], start: usize, dst: &mut [T]) {
        let mut rest = dst;
        self.runs(start, rest.len(), |offset, stride, n| {
            let (dst, tail) = std::mem::take(&mut rest).split_at_mut(n);
            rest = tail;
            match stride {
                1 => dst.copy_from_slice(&src[offset..offset + n]),
                0 => dst.fill(src[offset]),
                _ => {
                    for (d, s) in dst.iter_mut().zip(src[offset..].iter().step_by(stride)) {
                        *d = *s;
                    }
                }
            }
        });
    }

    /// The elements `start .. start + len` in their computing type; `len` is at most [`BLOCK`].
    pub(crate) fn read<'a, T: Scalar>(
        &self,
        src: &'a [T],
        start: usize,
        len: usize,
        workspace: &'a mut Workspace<T>,
    ) -> &'a [T::Acc] {
        self.read_into(src, start, &mut workspace.raw[..len], &mut workspace.acc[..len])
    }

    /// As [`read`](Self::read), for as many elements as both buffers have.
    pub(crate) fn read_into<'a, T: Scalar>(
        &self,
        src: &'a [T],
        start: usize,
        raw: &'a mut [T],
        acc: &'a mut [T::Acc],
    ) -> &'a [T::Acc] {
        let raw = match self.one_run(start, raw.len()) {
            Some(offset) => &src[offset..offset + raw.len()],
            None => {
                self.copy(src, start, raw);
                raw
            }
        };
        T::acc(raw, acc)
    }

    /// Returns where the elements `start .. start + len` are, if they are contiguous.
    fn one_run(&self, start: usize, len: usize) -> Option<usize> {
        match *self.dims() {
            _ if len == 0 => Some(0),
            [] => Some(0),
            [(_, 1)] => Some(start),
            [.., (inner, 1)] if start % inner + len <= inner => Some(self.offset(start)),
            _ => None,
        }
    }
}

impl Walk {
    /// Copies the elements from `start` on to the places that `to` shows of `dst`.
    pub(crate) fn copy_strided<T: Pod>(&self, src: &[T], start: usize, to: &Walk, dst: &mut [T]) {
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

/// The buffer in which [`Walk::read`] gathers elements that are not contiguous.
pub(crate) struct Workspace<T: Scalar> {
    raw: [T; BLOCK],
    acc: [T::Acc; BLOCK],
}

impl<T: Scalar> Workspace<T> {
    pub(crate) fn new() -> Self {
        Self { raw: [T::zeroed(); BLOCK], acc: [T::Acc::zeroed(); BLOCK] }
    }
}

/// Calls `f(state, start, block)` for each block of `out`; `state` is made once per task.
pub(crate) fn blocks<T: Send, S>(
    out: &mut [T],
    state: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, usize, &mut [T]) + Sync,
) {
    let task = |first: usize, out: &mut [T]| {
        let mut state = state();
        for (i, block) in out.chunks_mut(BLOCK).enumerate() {
            f(&mut state, first + i * BLOCK, block);
        }
    };
    if out.len() < PARALLEL {
        task(0, out);
    } else {
        parts(out, TASK, &|i, out| task(i * TASK, out));
    }
}

/// Calls `f(i, chunk)` for each chunk of `len` elements of `out` (the last may be shorter), each
/// of which costs as much as handling `work` elements.
pub(crate) fn chunks<T: Send>(out: &mut [T], len: usize, work: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    if out.is_empty() {
        return;
    }
    if out.len().div_ceil(len).saturating_mul(work) < PARALLEL {
        out.chunks_mut(len).enumerate().for_each(|(i, chunk)| f(i, chunk));
    } else {
        let per_task = (TASK / work.max(1)).max(1);
        parts(out, len * per_task, &|task, out| {
            out.chunks_mut(len).enumerate().for_each(|(i, chunk)| f(task * per_task + i, chunk));
        });
    }
}

/// Calls `f(i, part)` for each part of `len` elements of `out` (the last may be shorter), in parallel. Parts are large, so
/// that `f` need not be a type of its own, for each of which the division of work would be compiled anew.
pub(crate) fn parts<T: Send>(out: &mut [T], len: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
    out.par_chunks_mut(len).enumerate().for_each(|(i, part)| f(i, part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(walk: &Walk, start: usize, len: usize) -> Vec<usize> {
        let mut seen = Vec::new();
        walk.runs(start, len, |offset, stride, n| seen.extend((0..n).map(|i| offset + i * stride)));
        seen
    }

    #[test]
    fn runs_visit_in_row_major_order_from_anywhere() {
        for (shape, strides) in [
            (vec![], vec![]),
            (vec![2, 3, 4], vec![12, 4, 1]),
            (vec![2, 3, 4], vec![1, 2, 6]),
            (vec![3, 2, 4], vec![0, 0, 1]),
            (vec![3, 1, 4], vec![1, 77, 0]),
            (vec![2, 2, 2, 2, 2, 2], vec![64, 1, 4, 0, 9, 2]),
        ] {
            let layout = Layout::strided(&shape, &strides).unwrap();
            let walk = Walk::new(&layout);
            let expected: Vec<usize> = (0..layout.count())
                .map(|i| {
                    let mut rest = i;
                    shape.iter().zip(&strides).rev().fold(0, |sum, (n, s)| {
                        let at = rest % n;
                        rest /= n;
                        sum + at * s
                    })
                })
                .collect();
            for start in 0..layout.count() {
                assert_eq!(walk.offset(start), expected[start]);
                for len in 0..=layout.count() - start {
                    assert_eq!(all(&walk, start, len), expected[start..start + len], "{layout:?}");
                }
            }
        }
    }

    #[test]
    fn neighbours_merge() {
        let merged = |shape: &[usize], strides: &[usize]| {
            Walk::new(&Layout::strided(shape, strides).unwrap()).dims().to_vec()
        };
        assert_eq!(merged(&[2, 1, 3], &[3, 9, 1]), [(6, 1)]);
        assert_eq!(merged(&[4, 5], &[0, 0]), [(20, 0)]);
        assert_eq!(merged(&[4, 5], &[0, 1]), [(4, 0), (5, 1)]);
        assert_eq!(merged(&[1, 1], &[5, 5]), []);
    }

    #[test]
    fn splitting_reaches_every_element_once() {
        for len in [0, 1, BLOCK, PARALLEL - 1, PARALLEL, 3 * TASK + 7] {
            let mut out = vec![0usize; len];
            blocks(
                &mut out,
                || (),
                |(), start, block| {
                    for (i, o) in block.iter_mut().enumerate() {
                        *o += start + i + 1;
                    }
                },
            );
            assert!(out.iter().enumerate().all(|(i, &o)| o == i + 1));
            for row in [1, 3, 1000] {
                let mut out = vec![0usize; len];
                chunks(&mut out, row, 10 * row, |r, chunk| {
                    for (i, o) in chunk.iter_mut().enumerate() {
                        *o += r * row + i + 1;
                    }
                });
                assert!(out.iter().enumerate().all(|(i, &o)| o == i + 1));
            }
        }
    }
}
