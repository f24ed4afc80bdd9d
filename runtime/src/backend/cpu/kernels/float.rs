//! Rows of floating-point elements in f32: reading, writing, sums, maxima.

use super::{
    real::{Real, Strided, gather, offset_at},
    strided::parts,
};
use crate::backend::{Launch, cpu::Access};

#[cfg(test)]
pub(crate) mod testing;

/// Elements that one task should have at least; below twice that nothing is spread over threads.
const TASK: usize = 1 << 14;

/// Calls `$f::<T>($args)` for the floating-point type that `$dtype` names.
macro_rules! by_float {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match $dtype {
            $crate::DType::F32 => $f::<f32>($($arg),*),
            $crate::DType::F16 => $f::<half::f16>($($arg),*),
            $crate::DType::Bf16 => $f::<half::bf16>($($arg),*),
            other => unreachable!("{other} is not a floating-point type; ops refuses it"),
        }
    };
}
pub(crate) use by_float;

/// Input `index` of `launch` as elements of type `T`.
pub(crate) fn input<'a, T: Real>(access: &'a Access<'_>, launch: &Launch, index: usize) -> Strided<'a, T> {
    let view = &launch.inputs[index];
    Strided { data: access.slice::<T>(view), layout: view.layout }
}

/// Replaces each row of `x` along `axis` by the result of `f`. `out` is contiguous.
pub(crate) fn along_axis<T: Real>(
    x: Strided<'_, T>,
    axis: usize,
    out: &mut [T],
    f: impl Fn(&mut [f32]) + Sync,
) {
    let (shape, strides) = (x.layout.shape(), x.layout.strides());
    let n = shape[axis];
    let inner: usize = shape[axis + 1..].iter().product();
    in_blocks(out, n * inner, n, |block, to, row| {
        let outer = offset_at(block, &shape[..axis], &strides[..axis]);
        for i in 0..inner {
            let offset = outer + offset_at(i, &shape[axis + 1..], &strides[axis + 1..]);
            gather(x.data, offset, strides[axis], row);
            f(row);
            if inner == 1 {
                T::store(row, to);
            } else {
                for (to, &value) in to[i..].iter_mut().step_by(inner).zip(row.iter()) {
                    *to = T::narrow(value);
                }
            }
        }
    });
}

/// Calls `f(index, block, workspace)` for each `size` elements of `out`, over the threads if that pays.
pub(crate) fn in_blocks<T: Send>(
    out: &mut [T],
    size: usize,
    workspace: usize,
    f: impl Fn(usize, &mut [T], &mut [f32]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    if out.len() < 2 * TASK {
        let mut workspace = vec![0.0; workspace];
        for (i, block) in out.chunks_mut(size).enumerate() {
            f(i, block, &mut workspace);
        }
    } else {
        let per_task = (TASK / size).max(1);
        parts(out, size * per_task, &|task, out| {
            let mut workspace = vec![0.0; workspace];
            for (i, block) in out.chunks_mut(size).enumerate() {
                f(task * per_task + i, block, &mut workspace);
            }
        });
    }
}

/// Sums taken side by side: keeps the error small and lets the compiler use vectors.
const LANES: usize = 16;

/// `Σ f(v)`, always in the same order.
pub(crate) fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane += f(v);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(tail) {
        *lane += f(v);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0]
}

/// Returns the largest number of `row`; NaN is ignored, and the result is `-inf` if there is none.
pub(crate) fn maximum(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = if v > *lane { v } else { *lane };
        }
    }
    lanes.iter().chain(tail).fold(f32::NEG_INFINITY, |max, &v| if v > max { v } else { max })
}
