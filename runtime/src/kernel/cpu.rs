//! A kernel on host memory: its loop over blocks. An operand is borrowed if it is contiguous and stored in
//! the type of the computation, and otherwise gathered and converted. If all are borrowed, a task is one block.

use std::cell::Cell;

use bytemuck::{Pod, cast_slice, cast_slice_mut, try_cast_slice_mut};
use rayon::prelude::*;
use smallvec::SmallVec;

use super::{
    block::{Block, Input, Output, Randoms},
    constants::Constants,
    definition::{Compute, Definition, Number},
    random::draws::{Draws, Numbers},
};
use crate::{
    DType,
    backend::{
        Launch, View,
        cpu::{Access, PARALLEL, Scalar, TASK, Walk},
    },
    bf16, f16,
};

/// Elements that are gathered and converted at once; what a kernel of three operands needs for them stays in the
/// first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Runs a kernel; `constants` is empty if no parameter is a number, and it draws if one is a random number.
pub(super) fn run(
    definition: &Definition,
    constants: &Constants,
    draws: Option<&Draws>,
    access: &Access<'_>,
    launch: &Launch,
) {
    let Some(first) = launch.outputs.first() else { return };
    let [_, generators, real] = match draws {
        Some(draws) => draws.split(definition, constants, &launch.inputs),
        None => [&launch.inputs[..], &[], &[]],
    };
    let mut numbers = draws.into_iter().flat_map(|draws| Numbers::of(draws, access, generators, real, first));
    let mut views = launch.inputs.iter();
    let inputs = definition.inputs.iter().enumerate();
    let sources: SmallVec<[Source<'_>; 4]> = inputs
        .map(|(i, (_, compute))| match constants.get(i).copied().flatten() {
            _ if *compute == Compute::Random => numbers.next().map_or(Source::None, Source::Random),
            Some(number) => Source::Constant(number),
            None => views.next().map_or(Source::None, |view| Source::new(access, view, *compute)),
        })
        .collect();
    let computes = definition.outputs.iter().copied();
    in_tasks(first.layout.count(), results(access, &launch.outputs, computes), |task| {
        task.run(definition, &sources);
    });
}

/// The types and the bytes of outputs that are computed as `computes`.
pub(super) fn results<'a>(
    access: &Access<'a>,
    outputs: &[View],
    computes: impl Iterator<Item = Compute>,
) -> impl Iterator<Item = (Kind, &'a mut [u8])> {
    outputs
        .iter()
        .zip(computes)
        .map(|(view, compute)| (Kind { dtype: view.dtype, compute }, place(access, view)))
}

/// Calls `run` with tasks that together have all outputs, of `count` elements each: with one, or with many in parallel.
pub(super) fn in_tasks<'a>(
    count: usize,
    outputs: impl Iterator<Item = (Kind, &'a mut [u8])>,
    run: impl Fn(Task<'a>) + Send + Sync,
) {
    if count < PARALLEL {
        return run(Task { start: 0, outputs: outputs.collect() });
    }
    let starts = (0..count).step_by(TASK);
    let mut tasks: Vec<Task<'_>> = starts.map(|start| Task { start, outputs: SmallVec::new() }).collect();
    for (kind, bytes) in outputs {
        for (task, bytes) in tasks.iter_mut().zip(bytes.chunks_mut(TASK * kind.dtype.size())) {
            task.outputs.push((kind, bytes));
        }
    }
    tasks.into_par_iter().for_each(run);
}

/// The bytes of an output.
pub(super) fn place<'a>(access: &Access<'a>, view: &View) -> &'a mut [u8] {
    match view.dtype.size() {
        8 => cast_slice_mut(access.slice_mut::<u64>(view)),
        4 => cast_slice_mut(access.slice_mut::<u32>(view)),
        2 => cast_slice_mut(access.slice_mut::<u16>(view)),
        _ => access.slice_mut::<u8>(view),
    }
}

/// The types in which an operand is stored and computed.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) dtype: DType,
    pub(super) compute: Compute,
}

/// The source of a parameter's values.
pub(super) enum Source<'a> {
    Constant(Number),
    F32(Walk, &'a [f32]),
    F16(Walk, &'a [f16]),
    Bf16(Walk, &'a [bf16]),
    F64(Walk, &'a [f64]),
    I32(Walk, &'a [i32]),
    I64(Walk, &'a [i64]),
    I8(Walk, &'a [i8]),
    U32(Walk, &'a [u32]),
    U16(Walk, &'a [u16]),
    U8(Walk, &'a [u8]),
    Random(Numbers),
    None,
}

/// The buffer in which values of a block are gathered and converted.
pub(super) struct Buffer {
    /// A word for each element: of a type of fewer bits, the values are next to each other at its start.
    pub(super) raw: [u64; BLOCK],
    pub(super) converted: [u32; BLOCK],
    /// The elements that it holds for every block, of an operand that is one element.
    repeated: usize,
}

impl Buffer {
    const NEW: Self = Self { raw: [0; BLOCK], converted: [0; BLOCK], repeated: 0 };

    pub(super) fn words(&mut self) -> Words<'_> {
        let Self { raw, converted, repeated } = self;
        Words { raw, converted, repeated: Some(repeated) }
    }
}

/// A buffer of any length.
pub(super) struct Words<'b> {
    raw: &'b mut [u64],
    converted: &'b mut [u32],
    /// As that of [`Buffer`], where it is known.
    repeated: Option<&'b mut usize>,
}

thread_local! {
    /// Buffers that no task of the thread uses.
    static BUFFERS: Cell<Vec<Buffer>> = const { Cell::new(Vec::new()) };
}

/// Lets `run` use that many buffers, which hold nothing.
pub(super) fn with_buffers(count: usize, run: impl FnOnce(&mut [Buffer])) {
    let mut buffers = BUFFERS.take();
    if buffers.len() < count {
        buffers.resize_with(count, || Buffer::NEW);
    }
    let (used, _) = buffers.split_at_mut(count);
    used.iter_mut().for_each(|buffer| buffer.repeated = 0);
    run(used);
    BUFFERS.set(buffers);
}

impl<'a> Source<'a> {
    /// The elements of a view, or their bits if they are computed in another type of their size.
    pub(super) fn new(access: &Access<'a>, view: &View, compute: Compute) -> Self {
        let walk = match view.layout.is_contiguous() {
            true => Walk::flat(view.layout.count()),
            false => Walk::new(&view.layout),
        };
        match (compute, view.dtype) {
            (Compute::F32, DType::F16) => Self::F16(walk, access.slice(view)),
            (Compute::F32, DType::Bf16) => Self::Bf16(walk, access.slice(view)),
            (Compute::F32, _) => Self::F32(walk, access.slice(view)),
            (Compute::F64, _) => Self::F64(walk, access.slice(view)),
            (Compute::I32, _) => Self::I32(walk, access.slice(view)),
            (Compute::I64, _) => Self::I64(walk, access.slice(view)),
            (Compute::I8, _) => Self::I8(walk, access.slice(view)),
            (Compute::U32 | Compute::Random, _) => Self::U32(walk, access.slice(view)),
            (Compute::U16, _) => Self::U16(walk, access.slice(view)),
            (Compute::U8 | Compute::Bool, _) => Self::U8(walk, access.slice(view)),
        }
    }

    /// Returns whether all elements can be borrowed at once.
    pub(super) fn is_borrowed(&self) -> bool {
        match self {
            Self::Constant(_) | Self::F16(..) | Self::Bf16(..) | Self::Random(_) => false,
            Self::F32(walk, _) | Self::I32(walk, _) | Self::U32(walk, _) => walk.is_flat(),
            Self::F64(walk, _) | Self::I64(walk, _) | Self::I8(walk, _) => walk.is_flat(),
            Self::U16(walk, _) | Self::U8(walk, _) => walk.is_flat(),
            Self::None => true,
        }
    }

    /// Returns whether elements are stored in another type than they are computed in, or take two words.
    pub(super) fn is_converted(&self) -> bool {
        matches!(self, Self::F16(..) | Self::Bf16(..) | Self::Random(_))
    }

    /// The elements `start .. start + len`. Unless they are borrowed, `raw` has a word for each, and so has `converted` if
    /// they are converted.
    pub(super) fn read<'b>(
        &'b self,
        start: usize,
        len: usize,
        raw: &'b mut [u64],
        converted: &'b mut [u32],
    ) -> Input<'b> {
        let buffer = (!self.is_borrowed()).then_some(Words { raw, converted, repeated: None });
        self.read_with(start, len, buffer)
    }

    /// The elements `start .. start + len`.
    pub(super) fn read_with<'b>(&'b self, start: usize, len: usize, buffer: Option<Words<'b>>) -> Input<'b> {
        match self {
            Self::Constant(number) => constant(*number, len, buffer),
            Self::F32(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::F16(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::Bf16(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::F64(walk, src) => Input::F64(read(walk, src, start, len, buffer)),
            Self::I32(walk, src) => Input::I32(read(walk, src, start, len, buffer)),
            Self::I64(walk, src) => Input::I64(read(walk, src, start, len, buffer)),
            Self::I8(walk, src) => Input::I8(read(walk, src, start, len, buffer)),
            Self::U32(walk, src) => Input::U32(read(walk, src, start, len, buffer)),
            Self::U16(walk, src) => Input::U16(read(walk, src, start, len, buffer)),
            Self::U8(walk, src) => Input::U8(read(walk, src, start, len, buffer)),
            Self::Random(numbers) => Input::Random(drawn(numbers, start, len, buffer)),
            Self::None => Input::U8(&[]),
        }
    }
}

/// Without a buffer, the elements are borrowed.
fn read<'b, T: Scalar>(
    walk: &Walk,
    src: &'b [T],
    start: usize,
    len: usize,
    buffer: Option<Words<'b>>,
) -> &'b [T::Acc] {
    let Some(Words { raw, converted, repeated }) = buffer else {
        return T::acc(&src[start..start + len], &mut []);
    };
    let raw = &mut prefix(raw)[..len];
    // Elements that are not converted need no second word, and those of 64 bits would not fit there.
    let converted = try_cast_slice_mut(converted).unwrap_or_default().get_mut(..len).unwrap_or_default();
    match repeated {
        Some(repeated) if walk.is_one() => {
            if *repeated < len {
                *repeated = len;
                raw.fill(src[0]);
                T::acc(raw, converted);
            }
            T::held(raw, converted)
        }
        _ => walk.read_into(src, start, raw, converted),
    }
}

/// The words of random numbers, which take both parts of a buffer.
fn drawn<'b>(numbers: &Numbers, start: usize, len: usize, buffer: Option<Words<'b>>) -> Randoms<'b> {
    let Some(Words { raw, converted, .. }) = buffer else { return Randoms::default() };
    let (first, second) = (&mut prefix(raw)[..len], &mut converted[..len]);
    numbers.fill(start, first, second);
    Randoms { first, second }
}

/// A buffer as values of a type that is at most as large.
fn prefix<W: Pod, T: Pod>(words: &mut [W]) -> &mut [T] {
    cast_slice_mut(words)
}

fn constant(number: Number, len: usize, buffer: Option<Words<'_>>) -> Input<'_> {
    fn filled<T: Pod>(value: T, len: usize, buffer: Option<Words<'_>>) -> &[T] {
        let Some(Words { raw, repeated, .. }) = buffer else { return &[] };
        let to = &mut prefix(raw)[..len];
        match repeated {
            Some(repeated) if *repeated >= len => {}
            Some(repeated) => {
                *repeated = len;
                to.fill(value);
            }
            None => to.fill(value),
        }
        to
    }
    match number.compute {
        Compute::F32 => Input::F32(filled(f32::from_bits(number.bits as u32), len, buffer)),
        Compute::F64 => Input::F64(filled(f64::from_bits(number.bits), len, buffer)),
        Compute::I32 => Input::I32(filled(number.bits as i32, len, buffer)),
        Compute::I64 => Input::I64(filled(number.bits.cast_signed(), len, buffer)),
        Compute::I8 => Input::I8(filled(number.bits as i8, len, buffer)),
        Compute::U32 | Compute::Random => Input::U32(filled(number.bits as u32, len, buffer)),
        Compute::U16 => Input::U16(filled(number.bits as u16, len, buffer)),
        Compute::U8 | Compute::Bool => Input::U8(filled(number.bits as u8, len, buffer)),
    }
}

/// The elements of the outputs from one on.
pub(super) struct Task<'a> {
    pub(super) start: usize,
    pub(super) outputs: SmallVec<[(Kind, &'a mut [u8]); 2]>,
}

impl Task<'_> {
    /// Number of its elements.
    pub(super) fn count(&self) -> usize {
        self.outputs.first().map_or(0, |(kind, bytes)| bytes.len() / kind.dtype.size())
    }

    fn run(self, definition: &Definition, sources: &[Source<'_>]) {
        let count = self.count();
        let converted = self.outputs.iter().filter(|(kind, _)| kind.is_converted()).count();
        if converted == 0 && sources.iter().all(Source::is_borrowed) {
            return self.run_at_once(definition, sources, count);
        }
        with_buffers(sources.len() + converted, |buffers| {
            let (buffers, results) = buffers.split_at_mut(sources.len());
            self.run_in_blocks(definition, sources, count, buffers, results);
        });
    }

    fn run_at_once(self, definition: &Definition, sources: &[Source<'_>], count: usize) {
        let mut block = Block::new();
        for source in sources {
            block.read(source.read_with(self.start, count, None));
        }
        for (kind, bytes) in self.outputs {
            block.write(kind.output(bytes));
        }
        (definition.block)(&mut block);
    }

    fn run_in_blocks(
        mut self,
        definition: &Definition,
        sources: &[Source<'_>],
        count: usize,
        buffers: &mut [Buffer],
        results: &mut [Buffer],
    ) {
        for first in (0..count).step_by(BLOCK) {
            let len = BLOCK.min(count - first);
            let mut block = Block::new();
            for (source, buffer) in sources.iter().zip(&mut *buffers) {
                block.read(source.read_with(self.start + first, len, Some(buffer.words())));
            }
            let mut converted = results.iter_mut();
            for (kind, bytes) in &mut self.outputs {
                let size = kind.dtype.size();
                let bytes = &mut bytes[first * size..(first + len) * size];
                match if kind.is_converted() { converted.next() } else { None } {
                    Some(buffer) => block.write(Output::F32(&mut prefix(&mut buffer.raw)[..len])),
                    None => block.write(kind.output(bytes)),
                }
            }
            (definition.block)(&mut block);
            drop(block);
            let halves = self.outputs.iter_mut().filter(|(kind, _)| kind.is_converted());
            for ((kind, bytes), buffer) in halves.zip(&mut *results) {
                kind.store(&mut bytes[first * 2..(first + len) * 2], &prefix(&mut buffer.raw)[..len]);
            }
        }
    }
}

impl Kind {
    /// If it is computed in another type than it is stored in.
    pub(super) fn is_converted(self) -> bool {
        self.compute == Compute::F32 && self.dtype != DType::F32
    }

    pub(super) fn output(self, bytes: &mut [u8]) -> Output<'_> {
        match self.compute {
            Compute::F32 => Output::F32(cast_slice_mut(bytes)),
            Compute::F64 => Output::F64(cast_slice_mut(bytes)),
            Compute::I32 => Output::I32(cast_slice_mut(bytes)),
            Compute::I64 => Output::I64(cast_slice_mut(bytes)),
            Compute::I8 => Output::I8(cast_slice_mut(bytes)),
            Compute::U32 | Compute::Random => Output::U32(cast_slice_mut(bytes)),
            Compute::U16 => Output::U16(cast_slice_mut(bytes)),
            Compute::U8 | Compute::Bool => Output::U8(bytes),
        }
    }

    pub(super) fn store(self, bytes: &mut [u8], values: &[f32]) {
        match self.dtype {
            DType::F16 => f16::round(values, cast_slice_mut(bytes)),
            DType::Bf16 => bf16::round(values, cast_slice_mut(bytes)),
            _ => {}
        }
    }

    /// Converts what is stored, where it is computed in another type.
    pub(super) fn load(self, bytes: &[u8], values: &mut [f32]) {
        match (self.compute, self.dtype) {
            (Compute::F32, DType::F16) => {
                f16::acc(cast_slice(bytes), values);
            }
            (Compute::F32, DType::Bf16) => {
                bf16::acc(cast_slice(bytes), values);
            }
            _ => {}
        }
    }

    /// The values stored in `bytes`, of which [`load`](Self::load) made `values` where they are computed in another type.
    pub(super) fn input<'b>(self, bytes: &'b [u8], values: &'b [f32]) -> Input<'b> {
        match self.compute {
            Compute::F32 if self.is_converted() => Input::F32(values),
            Compute::F32 => Input::F32(cast_slice(bytes)),
            Compute::F64 => Input::F64(cast_slice(bytes)),
            Compute::I32 => Input::I32(cast_slice(bytes)),
            Compute::I64 => Input::I64(cast_slice(bytes)),
            Compute::I8 => Input::I8(cast_slice(bytes)),
            Compute::U32 | Compute::Random => Input::U32(cast_slice(bytes)),
            Compute::U16 => Input::U16(cast_slice(bytes)),
            Compute::U8 | Compute::Bool => Input::U8(bytes),
        }
    }
}
