//! Rows of floating-point elements in f32: reading, writing, sums, maxima, exponentials.

use rayon::prelude::*;

use super::real::{Real, Strided, gather, offset_at};
use crate::backend::{Launch, cpu::Access};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

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

/// A vector in f32. It may be seen through leading dimensions of stride 0.
pub(crate) fn vector<T: Real>(view: Strided<'_, T>) -> Vec<f32> {
    let axis = view.layout.rank() - 1;
    let mut out = vec![0.0; view.layout.shape()[axis]];
    if !view.data.is_empty() {
        gather(view.data, 0, view.layout.strides()[axis], &mut out);
    }
    out
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
        out.par_chunks_mut(size)
            .enumerate()
            .with_min_len((TASK / size).max(1))
            .for_each_init(|| vec![0.0; workspace], |workspace, (i, block)| f(i, block, workspace));
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

/// `e^x` for `x <= 0` (or NaN), within 2 ulp; zero where the result would be subnormal.
///
/// Free of branches and calls, so that loops over it are vectorised; softmax spends most of its
/// time here.
#[inline]
pub(crate) fn exp(x: f32) -> f32 {
    /// `ln` of the smallest normal number, rounded up.
    const LOWEST: f32 = -87.33;
    /// Adding and subtracting it rounds to an integer, which is left in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    /// `ln 2` in two parts: a multiple of the first by up to 128 is exact.
    const LN2_HI: f32 = 0.693_359_4;
    const LN2_LO: f32 = -2.121_944_4e-4;

    // x = n ln 2 + r, |r| <= ln 2 / 2.
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HI) - n * LN2_LO;
    // e^r by its Taylor series: the first term left out is r^8 / 8! < 6e-9.
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // 2^n, by adding n to the exponent of 1.
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x < LOWEST { 0.0 } else { p * scale }
}
