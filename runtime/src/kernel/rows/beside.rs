//! Rows that lie side by side in the memory of every operand, such as columns: they are computed some at a time, where they lie.

use bytemuck::cast_slice_mut;
use smallvec::SmallVec;

use super::{
    super::{
        block::{Block, Input},
        cpu::Source,
        definition::{Extent, Rows},
    },
    reductions::WIDTH,
};
use crate::backend::{
    View,
    cpu::{Scalar, Walk},
};

/// With fewer of them, vectors would have few values.
const LEAST: usize = 8;

/// The arrangement of rows side by side.
pub(super) struct Beside {
    /// Computes some of them.
    pub(super) block: fn(&mut Block<'_>),
    /// So many are next to each other, then there may be a gap.
    pub(super) run: usize,
    /// Of each parameter that has rows of a tensor: where they begin, and the step between the values of one.
    pub(super) places: SmallVec<[Option<(Walk, usize)>; 4]>,
}

impl Beside {
    /// Returns how rows of tensors lie side by side, if they do and the kernel can be computed so. `is_tensor` returns whether a
    /// parameter is one of `tensors`.
    pub(super) fn new(rows: &Rows, tensors: &[View], is_tensor: impl Fn(usize) -> bool) -> Option<Self> {
        let block = rows.columns?;
        let (mut views, mut run) = (tensors.iter(), usize::MAX);
        let mut places = SmallVec::new();
        for (i, extent) in rows.inputs.iter().enumerate() {
            let view = if is_tensor(i) { views.next() } else { None };
            places.push(match (view, extent) {
                (Some(view), Extent::Row) => {
                    let (starts, stride) = beside(view)?;
                    run = run.min(starts.dims().last()?.0);
                    Some((starts, stride))
                }
                (None, Extent::Row) => return None,
                (_, Extent::One) => None,
            });
        }
        (LEAST..usize::MAX).contains(&run).then_some(Self { block, run, places })
    }
}

/// The places where the rows of a view begin, and the step between the values of one, if there is more than one row and they lie side by side.
fn beside(view: &View) -> Option<(Walk, usize)> {
    let layout = &view.layout;
    let row = layout.rank().checked_sub(1)?;
    let (starts, size, stride) = (Walk::without(layout, row), layout.shape()[row], layout.strides()[row]);
    (size > 1 && stride != 1 && starts.dims().last()?.1 == 1).then_some((starts, stride))
}

/// Words for values that are not computed where they lie; there are none of a kind that is not needed.
pub(super) struct Words<'b> {
    /// For values of the type that is computed in, which are put side by side.
    pub(super) gathered: &'b mut [u64],
    /// For values of another type.
    pub(super) converted: &'b mut [u32],
}

/// `count` rows from `offset` on, of `size` values each: where they lie, if they are as many as are computed at once and of the
/// type that is computed in, otherwise in `words`; and the step between values.
pub(super) fn tile<'b>(
    source: &'b Source<'_>,
    offset: usize,
    stride: usize,
    count: usize,
    size: usize,
    words: Words<'b>,
) -> (Input<'b>, usize) {
    let tile = Tile { offset, stride, count, size };
    match source {
        Source::F32(_, src) => tile.read(src, words, Input::F32),
        Source::F16(_, src) => tile.converted(src, words),
        Source::Bf16(_, src) => tile.converted(src, words),
        Source::F64(_, src) => tile.read(src, words, Input::F64),
        Source::I32(_, src) => tile.read(src, words, Input::I32),
        Source::I64(_, src) => tile.read(src, words, Input::I64),
        Source::I8(_, src) => tile.read(src, words, Input::I8),
        Source::U32(_, src) => tile.read(src, words, Input::U32),
        Source::U16(_, src) => tile.read(src, words, Input::U16),
        Source::U8(_, src) => tile.read(src, words, Input::U8),
        Source::Constant(_) | Source::Random(_) | Source::None => (Input::U8(&[]), 0),
    }
}

/// Some rows of a view.
struct Tile {
    offset: usize,
    stride: usize,
    count: usize,
    size: usize,
}

impl Tile {
    /// Values of the type that is computed in.
    fn read<'b, T: Scalar<Acc = T>>(
        &self,
        src: &'b [T],
        words: Words<'b>,
        input: fn(&'b [T]) -> Input<'b>,
    ) -> (Input<'b>, usize) {
        if self.count == WIDTH {
            return (input(&src[self.offset..]), self.stride);
        }
        let to = &mut cast_slice_mut(words.gathered)[..self.size * WIDTH];
        for (i, to) in to.chunks_exact_mut(WIDTH).enumerate() {
            self.copy(src, i, to);
        }
        (input(to), WIDTH)
    }

    /// Values of another type.
    fn converted<'b, T: Scalar<Acc = f32>>(&self, src: &[T], words: Words<'b>) -> (Input<'b>, usize) {
        let to: &mut [f32] = &mut cast_slice_mut(words.converted)[..self.size * WIDTH];
        for (i, to) in to.chunks_exact_mut(WIDTH).enumerate() {
            let from = self.offset + i * self.stride;
            if self.count == WIDTH {
                T::acc(&src[from..from + WIDTH], to);
            } else {
                let mut values = [T::zeroed(); WIDTH];
                self.copy(src, i, &mut values);
                T::acc(&values, to);
            }
        }
        (Input::F32(to), WIDTH)
    }

    /// The values of one index, with anything behind the last row.
    fn copy<T: Copy>(&self, src: &[T], index: usize, to: &mut [T]) {
        let from = self.offset + index * self.stride;
        to[..self.count].copy_from_slice(&src[from..from + self.count]);
    }
}
