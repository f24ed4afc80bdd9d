//! Kernels that pick or place rows by indices found in device memory.

use smallvec::SmallVec;

use super::{
    scalar::with_word,
    strided::{Walk, chunks},
};
use crate::{
    backend::{
        Launch, View,
        cpu::{Access, Fault},
        operations::Counts,
    },
    base::rank::MAX_RANK,
};

/// The row index that [`scatter_rows`] skips.
const SKIP: u32 = u32::MAX;

pub(crate) fn embedding(access: &Access<'_>, launch: &Launch, counts: Counts) -> Result<(), Fault> {
    let (ids, table) = (&launch.inputs[0], &launch.inputs[1]);
    pick(access, launch, ids, table, 0, counts)
}

pub(crate) fn gather(access: &Access<'_>, launch: &Launch, axis: usize, counts: Counts) -> Result<(), Fault> {
    let (x, index) = (&launch.inputs[0], &launch.inputs[1]);
    pick(access, launch, index, x, axis, counts)
}

/// Picks by `index`; returns the first real index that is out of range as a fault.
fn pick(
    access: &Access<'_>,
    launch: &Launch,
    index: &View,
    x: &View,
    axis: usize,
    counts: Counts,
) -> Result<(), Fault> {
    let mut rows = x.layout.shape()[axis];
    // For each dimension of the index that has a count: the number of indices after it, its size, and the
    // count.
    let mut real: SmallVec<[(usize, usize, usize); MAX_RANK]> = SmallVec::new();
    let sizes = index.layout.shape();
    for (place, view) in counts.places().zip(&launch.inputs[2..]) {
        let count = access.count(view);
        match sizes.get(place) {
            Some(&size) => real.push((sizes[place + 1..].iter().product(), size, count)),
            None => rows = rows.min(count),
        }
    }
    let mut index = values(access, index);
    copy_picked(access, &index, x, axis, rows, &launch.outputs[0]);
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

pub(crate) fn scatter_rows(access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
    let (index, src, state) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let (places, fault) = places(access, launch, index, launch.inputs.get(2));
    let dims = |view: &View| {
        Walk::of(view.layout.shape().iter().copied().zip(view.layout.strides().iter().copied()).skip(1))
    };
    let (from, to) = (dims(src), dims(state));
    let (from_stride, to_stride) = (src.layout.strides()[0], state.layout.strides()[0]);
    if to.count() > 0 && !places.is_empty() {
        with_word!(state.dtype, T => {
            let (src, dst) = (access.slice::<T>(src), access.slice_mut::<T>(state));
            // In order, on one thread: of rows given twice the last wins.
            for (i, row) in places {
                from.copy_strided(&src[i * from_stride..], 0, &to, &mut dst[row * to_stride..]);
            }
        });
    }
    fault
}

/// Returns the rows that are written, as `(row of the source, row of the state)` in order, and the fault of
/// those that do not exist.
pub(super) fn places(
    access: &Access<'_>,
    launch: &Launch,
    index: &View,
    count: Option<&View>,
) -> (Vec<(usize, usize)>, Result<(), Fault>) {
    let mut index = values(access, index);
    if let Some(count) = count {
        index.truncate(access.count(count));
    }
    let rows = launch.outputs[0].layout.shape()[0];
    let to = |(i, &row): (usize, &u32)| (row != SKIP && (row as usize) < rows).then_some((i, row as usize));
    let places = index.iter().enumerate().filter_map(to).collect();
    // Skipped rows look like any index out of range, but are not mistakes.
    index.retain(|&row| row != SKIP);
    (places, check(launch, &index, rows))
}

/// The elements of a u32 view, in order.
fn values(access: &Access<'_>, view: &View) -> Vec<u32> {
    let mut values = vec![0; view.layout.count()];
    Walk::new(&view.layout).copy(access.slice::<u32>(view), 0, &mut values);
    values
}

/// Returns the first index that is out of range, as a fault.
fn check(launch: &Launch, index: &[u32], rows: usize) -> Result<(), Fault> {
    match index.iter().find(|&&i| i as usize >= rows) {
        None => Ok(()),
        Some(&index) => Err(Fault::Index { op: launch.op.name(), index: index.into(), bound: rows as u64 }),
    }
}
