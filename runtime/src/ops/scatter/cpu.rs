//! Rows placed on the CPU.

use crate::backend::{
    Launch, View,
    cpu::{
        Access, Fault,
        kernels::{
            indices::{check, values},
            scalar::with_word,
            strided::Walk,
        },
    },
};

#[cfg(test)]
mod tests;

/// The row index that is skipped.
const SKIP: u32 = u32::MAX;

pub(super) fn scatter_rows(access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
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

/// Elements at places that count from 1; 0 is none.
pub(super) fn write_elements(access: &Access<'_>, launch: &Launch) {
    let (places, src, state) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let places = values(access, places);
    with_word!(state.dtype, T => {
        let (src, dst) = (access.slice::<T>(src), access.slice_mut::<T>(state));
        // In order, on one thread: of elements given twice the last wins.
        for (place, value) in places.iter().zip(src) {
            let place = (*place as usize).checked_sub(1);
            if let Some(to) = place.and_then(|place| dst.get_mut(place)) {
                *to = *value;
            }
        }
    });
}

/// Returns the rows that are written, as `(row of the source, row of the state)` in order, and the fault of
/// those that do not exist.
pub(in crate::ops) fn places(
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
