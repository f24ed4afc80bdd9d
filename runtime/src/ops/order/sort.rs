//! Sorting, by merges of sorted runs: every element of a merged run finds its place by itself.

use super::lines::Lines;
use crate::{
    Argument, DType, Element, Error, Number, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Definition, Kernel as _},
    },
    ops::{
        arange, broadcast_to,
        by_type::{ByType, each_type, rank},
        ge, masked_fill, pointwise, size,
    },
};

/// Kernels of the keys by which elements are sorted: a smaller element has a smaller key. NaN is the largest, and both zeros
/// are equal.
macro_rules! keys {
    ($($module:ident($x:ident: $t:ident) { $($key:tt)* })*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn ascending($x: $t) -> u32 {
                $($key)*
            }

            #[kernel]
            pub(super) fn descending(x: $t) -> u32 {
                !ascending(x)
            }
        }
    )*};
}

keys! {
    f32s(x: f32) {
        let bits = if x == 0.0 { 0u32 } else { x.to_bits() };
        if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 }
    }
    i32s(x: i32) { x as u32 ^ 0x8000_0000 }
    u32s(x: u32) { x }
    u8s(x: u8) { x as u32 }
    i8s(x: i8) { x as u32 ^ 0x8000_0000 }
}

/// Keys of 64 bits, and those of floats from their bits.
macro_rules! long_keys {
    ($($module:ident($x:ident) { $($key:tt)* })*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn ascending($x: i64) -> i64 {
                $($key)*
            }

            #[kernel]
            pub(super) fn descending(x: i64) -> i64 {
                !ascending(x)
            }
        }
    )*};
}

long_keys! {
    f64s(bits) { super::rank(bits, i64::MAX) }
    i64s(x) { x }
}

/// Kernels that merge by keys of a type.
macro_rules! merges {
    ($($module:ident $t:ident;)*) => {$(
mod $module {
    use crate::kernel;

    /// Of each pair of neighbouring runs of `order`, which are `length` long, the first `keep` elements together. What is
    /// equal stays in its order.
    ///
    /// An element at place `at` of the merged run is preceded by `low` elements of the left run, which a search finds: those
    /// that are not larger than the element of the right run that they displace.
    #[kernel(index)]
    pub(super) fn merge(
        keys: View<$t, 2>,
        order: View<u32, 2>,
        length: i32,
        keep: i32,
        #[key] steps: u32,
        [row, place]: [i32; 2],
    ) -> u32 {
        let first = place / keep * 2 * length;
        let at = place % keep;
        let middle = (first + length).min(order.dim(1));
        let end = (middle + length).min(order.dim(1));
        let mut low = (at - (end - middle)).max(0);
        let mut high = at.min(middle - first);
        for _ in 0..steps {
            if low < high {
                let half = (low + high) / 2;
                let left = keys.at([row, order.at([row, first + half]) as i32]);
                let right = keys.at([row, order.at([row, middle + at - 1 - half]) as i32]);
                if left <= right {
                    low = half + 1;
                } else {
                    high = half;
                }
            }
        }
        let left = first + low;
        let right = middle + at - low;
        let mut from = right;
        if left < middle {
            from = left;
            if right < end {
                let left_key = keys.at([row, order.at([row, left]) as i32]);
                let right_key = keys.at([row, order.at([row, right]) as i32]);
                if right_key < left_key {
                    from = right;
                }
            }
        }
        order.at([row, from])
    }
}
    )*};
}

merges! {
    short u32;
    long i64;
}

/// Kernels that move elements by their size.
mod of {
    use crate::kernel;

    #[kernel(index)]
    pub(super) fn sort_floats(x: View<f32, 2>, order: View<u32, 2>, [row, i]: [i32; 2]) -> f32 {
        x.at([row, order.at([row, i]) as i32])
    }

    #[kernel(index)]
    pub(super) fn sort_words(x: View<u32, 2>, order: View<u32, 2>, [row, i]: [i32; 2]) -> u32 {
        x.at([row, order.at([row, i]) as i32])
    }

    #[kernel(index)]
    pub(super) fn sort_longs(x: View<i64, 2>, order: View<u32, 2>, [row, i]: [i32; 2]) -> i64 {
        x.at([row, order.at([row, i]) as i32])
    }

    #[kernel(index)]
    pub(super) fn sort_bytes(x: View<u8, 2>, order: View<u32, 2>, [row, i]: [i32; 2]) -> u8 {
        x.at([row, order.at([row, i]) as i32])
    }
}

/// Sorts the elements along `axis`, and returns the index that each had.
///
/// Corresponds to `torch.sort` with `stable=True`.
///
/// Equal elements stay in their order, also if it is `descending`. NaN counts as larger than every number. Lines have at
/// most 2^30 elements; the work is proportional to the length times its logarithm squared. Padding propagates; that of `axis`
/// stays behind the real elements, whichever way they are sorted.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[2.0f32, 9.0, 2.0, 4.0])?;
/// let (values, index) = ops::sort(&x, 0, true)?;
/// assert_eq!(step.read(&values)?, [9.0, 4.0, 2.0, 2.0]);
/// assert_eq!(step.read(&index)?, [1, 3, 0, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] for longer lines.
pub fn sort<'s, T: Number>(
    x: &Tensor<'s, T>,
    axis: usize,
    descending: bool,
) -> Result<(Tensor<'s, T>, Tensor<'s, u32>)> {
    let (lines, rows) = Lines::with_padding("sort", x, axis)?;
    let order = sorted_places(&rows, lines.length, descending, real(x, axis)?.as_ref())?;
    Ok((lines.restore(&picked(&rows, &order)?)?, lines.restore(&order)?))
}

/// Returns the indices of the elements along `axis`, in the order of the elements, as [`sort`] does.
///
/// Corresponds to `torch.argsort` with `stable=True`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[4], &[2.0f32, 9.0, 2.0, 4.0])?;
/// assert_eq!(step.read(&ops::argsort(&x, 0, false)?)?, [0, 2, 3, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`sort`].
pub fn argsort<'s, T: Number>(x: &Tensor<'s, T>, axis: usize, descending: bool) -> Result<Tensor<'s, u32>> {
    let (lines, rows) = Lines::with_padding("argsort", x, axis)?;
    lines.restore(&sorted_places(&rows, lines.length, descending, real(x, axis)?.as_ref())?)
}

/// Returns the `k` largest elements along `axis`, the largest first, and their indices. Of equal elements the
/// first ones are taken, in their order.
///
/// Corresponds to `torch.topk` with `largest=True` and `sorted=True`.
///
/// NaN counts as larger than every number. Lines have at most 2^30 elements. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 9.0, 4.0, 5.0, 5.0, 5.0])?;
/// let (values, index) = ops::topk(&x, 2, 1)?;
/// assert_eq!(step.read(&values)?, [9.0, 4.0, 5.0, 5.0]);
/// assert_eq!(step.read(&index)?, [1, 2, 0, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::Shape`] for longer lines; [`Error::Argument`] if `k` is larger than the size of `axis`; [`Error::PaddedMix`] if `axis` is
/// padded.
pub fn topk<'s, T: Number>(
    x: &Tensor<'s, T>,
    k: usize,
    axis: usize,
) -> Result<(Tensor<'s, T>, Tensor<'s, u32>)> {
    let (lines, rows) = Lines::of("topk", x, axis)?;
    if k > lines.length {
        let reason = format!("k is {k}, and axis {axis} has {} elements", lines.length);
        return Err(Error::Argument { op: "topk", reason });
    }
    let order = sorted_places(&rows, k, true, None)?;
    Ok((lines.restore(&picked(&rows, &order)?)?, lines.restore(&order)?))
}

/// The number of real elements along `axis`, if it is padded.
fn real<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Option<Tensor<'s, u32>>> {
    x.raw.marks.get(axis).map(|_| size(x, axis)).transpose()
}

/// Keys, of which those of places from `end` on are the `last` ones. What is equal stays in its order, so real elements
/// with that key are in front of them.
fn real_first<'s, K: Element>(
    keys: Tensor<'s, K>,
    end: Option<&Tensor<'s, u32>>,
    last: impl Argument<'s, K>,
) -> Result<Tensor<'s, K>> {
    let Some(end) = end else { return Ok(keys) };
    let is_padding = ge(&arange::<u32>(keys.scope(), keys.size(1))?, end)?;
    masked_fill(&keys, &is_padding, last)
}

/// The indices of the first `k` elements of each row of a matrix, in the order of the elements; those from `end` on are last.
pub(super) fn sorted_places<'s, T: Number>(
    rows: &Tensor<'s, T>,
    k: usize,
    descending: bool,
    end: Option<&Tensor<'s, u32>>,
) -> Result<Tensor<'s, u32>> {
    const ASCENDING: ByType = each_type!(f32s::ascending);
    const DESCENDING: ByType = each_type!(f32s::descending);
    let keys = if descending { DESCENDING } else { ASCENDING }.of::<T>();
    match T::DTYPE.size() {
        8 => {
            let keys = real_first(pointwise::of_one(keys, rows)?, end, i64::MAX)?;
            merged::<i64>(long::merge::DEFINITION, &keys, k)
        }
        _ => {
            let keys = real_first(pointwise::of_one(keys, rows)?, end, u32::MAX)?;
            merged::<u32>(short::merge::DEFINITION, &keys, k)
        }
    }
}

/// The indices of the first `k` keys of each row of a matrix, in the order of the keys, by a kernel that merges.
fn merged<'s, K: Element>(
    definition: &'static Definition,
    keys: &Tensor<'s, K>,
    k: usize,
) -> Result<Tensor<'s, u32>> {
    let (count, size) = (keys.size(0), keys.size(1));
    let mut order = broadcast_to(&arange::<u32>(keys.scope(), size)?, [count, size])?;
    // Of each run of `length` elements, all or the first `k`.
    let mut length = 1;
    while order.size(1) > length {
        let keep = k.min(2 * length).max(1);
        let (pairs, rest) = (order.size(1) / (2 * length), order.size(1) % (2 * length));
        let mut call = Call::new(definition, keys)?;
        call.argument::<u32>(&order)?;
        call.key(length as i32);
        call.key(keep as i32);
        call.key(usize::BITS - length.leading_zeros());
        order = call.launch_indexed([count, pairs * keep + rest.min(keep)])?;
        length = keep;
    }
    crate::ops::narrow(&order, 1, 0, k)
}

/// The elements of each row at these indices.
fn picked<'s, T: Number>(rows: &Tensor<'s, T>, order: &Tensor<'s, u32>) -> Result<Tensor<'s, T>> {
    let definition = match T::DTYPE {
        DType::F16 | DType::Bf16 => of::sort_floats::DEFINITION,
        DType::F32 | DType::I32 | DType::U32 => of::sort_words::DEFINITION,
        DType::F64 | DType::I64 => of::sort_longs::DEFINITION,
        DType::I8 | DType::U8 | DType::Bool => of::sort_bytes::DEFINITION,
    };
    let mut call = Call::new(definition, rows)?;
    call.argument::<u32>(order)?;
    call.launch_indexed([order.size(0), order.size(1)])
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [
        f32s::descending::DEFINITION,
        i32s::descending::DEFINITION,
        u8s::descending::DEFINITION,
        i8s::descending::DEFINITION,
        f64s::descending::DEFINITION,
        short::merge::DEFINITION,
        long::merge::DEFINITION,
        of::sort_floats::DEFINITION,
        of::sort_words::DEFINITION,
        of::sort_longs::DEFINITION,
        of::sort_bytes::DEFINITION,
    ]
    .into_iter()
}
