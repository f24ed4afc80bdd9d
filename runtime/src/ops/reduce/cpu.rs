//! Kernels that remove one axis.
//!
//! Sums run in several accumulators that are merged per block: they vectorise, and the rounding
//! error grows with the number of blocks, not of elements.

use bytemuck::Zeroable;

use super::operation::Reduce;
use crate::{
    DType,
    backend::{
        Launch, View,
        cpu::{
            Access,
            kernels::{
                float::by_float,
                scalar::{Arith, Scalar},
                strided::{BLOCK, Walk, Workspace, chunks},
            },
        },
    },
    bf16, f16,
};

mod normalize;
#[cfg(test)]
mod tests;

pub(super) use normalize::{l2_normalize, softmax};

/// Accumulators of a row.
const LANES: usize = 16;

/// Rows added up before they are merged into the total.
const ROWS: usize = 64;

/// A view split into the slices that become one element each.
struct Slices {
    /// First elements of the slices, in output order.
    starts: Walk,
    /// One slice.
    axis: Walk,
    len: usize,
    stride: usize,
}

impl Slices {
    fn new(view: &View, axis: usize) -> Self {
        let (len, stride) = (view.layout.shape()[axis], view.layout.strides()[axis]);
        Self { starts: Walk::without(&view.layout, axis), axis: Walk::of([(len, stride)]), len, stride }
    }

    /// Returns whether to process slices one by one; otherwise all slices advance together.
    fn one_by_one(&self) -> bool {
        self.stride == 1 || self.starts.count() < LANES
    }

    /// Calls `f(i)` for each output element, with its own workspace memory per group.
    fn each<T: Send, S>(
        &self,
        out: &mut [T],
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, usize) -> T + Sync,
    ) {
        let group = (BLOCK / self.len.max(1)).max(1);
        chunks(out, group, group * self.len, |g, out| {
            let mut state = state();
            for (i, y) in out.iter_mut().enumerate() {
                *y = f(&mut state, g * group + i);
            }
        });
    }
}

pub(super) fn reduce(access: &Access<'_>, launch: &Launch, kind: Reduce, axis: usize) {
    match launch.inputs[0].dtype {
        DType::F32 => reduce_as::<f32>(access, launch, kind, axis),
        DType::F16 => reduce_as::<f16>(access, launch, kind, axis),
        DType::Bf16 => reduce_as::<bf16>(access, launch, kind, axis),
        DType::I32 => reduce_as::<i32>(access, launch, kind, axis),
        DType::U32 => reduce_as::<u32>(access, launch, kind, axis),
        DType::U8 => reduce_as::<u8>(access, launch, kind, axis),
        other => unreachable!("{other} has kernels of rows (`further.rs`), or none"),
    }
}

fn reduce_as<T: Scalar>(access: &Access<'_>, launch: &Launch, kind: Reduce, axis: usize) {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let n = x.layout.shape()[axis];
    match kind {
        Reduce::Sum => fold::<T, _>(access, x, y, axis, Zeroable::zeroed(), Arith::add, Arith::add, T::down),
        Reduce::Max => fold::<T, _>(access, x, y, axis, Arith::LOWEST, Arith::max, Arith::max, T::down),
        Reduce::Mean if x.dtype.is_computed_in_f32() => {
            let mean = |sum: <T as Scalar>::Acc| T::down(sum.div(Arith::from_f32(n as f32)));
            fold::<T, _>(access, x, y, axis, Zeroable::zeroed(), Arith::add, Arith::add, mean);
        }
        Reduce::Mean => {
            let mean = |sum: f64| T::of_f64(sum / n as f64);
            fold::<T, _>(access, x, y, axis, 0.0, |sum, v| sum + v.to_f64(), |a, b| a + b, mean);
        }
    }
}

/// Folds each slice of `x` along `axis` to one element of `y`. `step` takes in an element, `merge`
/// joins partial results.
#[allow(clippy::too_many_arguments, reason = "a fold is its parts, and there is one caller")]
fn fold<T: Scalar, R: Copy + Send + Sync>(
    access: &Access<'_>,
    x: &View,
    y: &View,
    axis: usize,
    init: R,
    step: impl Fn(R, T::Acc) -> R + Sync,
    merge: impl Fn(R, R) -> R + Sync,
    finish: impl Fn(R) -> T + Sync,
) {
    let slices = Slices::new(x, axis);
    let (src, out) = (access.slice::<T>(x), access.slice_mut::<T>(y));
    if slices.one_by_one() {
        slices.each(out, Workspace::new, |workspace, i| {
            let first = if slices.len == 0 { 0 } else { slices.starts.offset(i) };
            let mut total = init;
            for start in (0..slices.len).step_by(BLOCK) {
                let len = BLOCK.min(slices.len - start);
                let x = slices.axis.read(&src[first..], start, len, workspace);
                total = merge(total, row(x, init, &step, &merge));
            }
            finish(total)
        });
    } else {
        chunks(out, BLOCK, BLOCK.saturating_mul(slices.len), |i, out| {
            let mut workspace = Workspace::new();
            let (mut total, mut part) = ([init; BLOCK], [init; BLOCK]);
            for k in 0..slices.len {
                let x = slices.starts.read(&src[k * slices.stride..], i * BLOCK, out.len(), &mut workspace);
                for (part, x) in part.iter_mut().zip(x) {
                    *part = step(*part, *x);
                }
                if k % ROWS == ROWS - 1 || k + 1 == slices.len {
                    for (total, part) in total.iter_mut().zip(&mut part) {
                        *total = merge(*total, std::mem::replace(part, init));
                    }
                }
            }
            for (y, total) in out.iter_mut().zip(total) {
                *y = finish(total);
            }
        });
    }
}

#[inline(always)]
fn row<A: Copy, R: Copy>(x: &[A], init: R, step: impl Fn(R, A) -> R, merge: impl Fn(R, R) -> R) -> R {
    let mut lanes = [init; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, *x);
    }
    lanes.into_iter().fold(init, merge)
}

/// Sums the elements that the mask selects and counts them; `finish` makes the result of both.
pub(super) fn masked(
    access: &Access<'_>,
    launch: &Launch,
    axis: usize,
    // Called once for each result: not worth compiling the loops again for each function.
    finish: fn(f32, f32) -> f32,
) {
    by_float!(launch.inputs[0].dtype, masked_as(access, launch, axis, finish));
}

fn masked_as<T: Scalar<Acc = f32>>(
    access: &Access<'_>,
    launch: &Launch,
    axis: usize,
    finish: fn(f32, f32) -> f32,
) {
    let (x, mask, y) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let (mut slices, masks) = (Slices::new(x, axis), Slices::new(mask, axis));
    if let Some(count) = launch.inputs.get(2) {
        slices.len = slices.len.min(access.count(count));
    }
    let (src, mask, out) = (access.slice::<T>(x), access.slice::<u8>(mask), access.slice_mut::<T>(y));
    let finish = |(sum, weights): WeightedSum| T::down(finish(sum, weights));
    let operands = Masked { slices, src, masks, mask };
    if operands.slices.one_by_one() {
        operands.one_by_one(out, finish);
    } else {
        operands.together(out, finish);
    }
}

/// A sum of weighted elements, and the sum of the weights.
type WeightedSum = (f32, f32);

const NO_SUM: WeightedSum = (0.0, 0.0);

/// Adds an element, if it is selected. Otherwise it is dropped whatever it holds: padding may be NaN.
#[inline(always)]
fn step((sum, weights): WeightedSum, x: f32, m: u8) -> WeightedSum {
    let m = f32::from(u8::from(m != 0));
    (sum + if m == 0.0 { 0.0 } else { x * m }, weights + m)
}

fn merged(a: WeightedSum, b: WeightedSum) -> WeightedSum {
    (a.0 + b.0, a.1 + b.1)
}

/// The slices of a view with the mask of their elements.
struct Masked<'a, T> {
    slices: Slices,
    src: &'a [T],
    masks: Slices,
    mask: &'a [u8],
}

impl<T: Scalar<Acc = f32>> Masked<'_, T> {
    /// Sums slice by slice, each in several accumulators.
    fn one_by_one(&self, out: &mut [T], finish: impl Fn(WeightedSum) -> T + Sync) {
        let Self { slices, src, masks, mask } = self;
        slices.each(
            out,
            || (Workspace::new(), Workspace::new(), [NO_SUM; LANES]),
            |(scratch_x, scratch_m, lanes), i| {
                let (first_x, first_m) = match slices.len {
                    0 => (0, 0),
                    _ => (slices.starts.offset(i), masks.starts.offset(i)),
                };
                let mut total = NO_SUM;
                for start in (0..slices.len).step_by(BLOCK) {
                    let len = BLOCK.min(slices.len - start);
                    let x = slices.axis.read(&src[first_x..], start, len, scratch_x);
                    let m = masks.axis.read(&mask[first_m..], start, len, scratch_m);
                    lanes.fill(NO_SUM);
                    for (x, m) in x.chunks(LANES).zip(m.chunks(LANES)) {
                        for ((lane, x), m) in lanes.iter_mut().zip(x).zip(m) {
                            *lane = step(*lane, *x, *m);
                        }
                    }
                    total = lanes.iter().copied().fold(total, merged);
                }
                finish(total)
            },
        );
    }

    /// Sums all slices of a block at the same time.
    fn together(&self, out: &mut [T], finish: impl Fn(WeightedSum) -> T + Sync) {
        let Self { slices, src, masks, mask } = self;
        chunks(out, BLOCK, BLOCK.saturating_mul(slices.len), |i, out| {
            let (mut scratch_x, mut scratch_m) = (Workspace::new(), Workspace::new());
            let (mut total, mut part) = ([NO_SUM; BLOCK], [NO_SUM; BLOCK]);
            let (first, len) = (i * BLOCK, out.len());
            for k in 0..slices.len {
                let x = slices.starts.read(&src[k * slices.stride..], first, len, &mut scratch_x);
                let m = masks.starts.read(&mask[k * masks.stride..], first, len, &mut scratch_m);
                for ((part, x), m) in part.iter_mut().zip(x).zip(m) {
                    *part = step(*part, *x, *m);
                }
                if k % ROWS == ROWS - 1 || k + 1 == slices.len {
                    for (total, part) in total.iter_mut().zip(&mut part) {
                        *total = merged(*total, std::mem::replace(part, NO_SUM));
                    }
                }
            }
            for (y, total) in out.iter_mut().zip(total) {
                *y = finish(total);
            }
        });
    }
}
