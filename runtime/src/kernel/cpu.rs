//! A kernel on host memory: its loop over blocks. An operand is borrowed if it is contiguous and stored in
//! the type of the computation, and otherwise gathered and converted.

use bytemuck::{Pod, cast_slice_mut};
use half::slice::HalfFloatSliceExt as _;
use rayon::prelude::*;
use smallvec::SmallVec;

use super::{
    block::{Block, Input, Output},
    definition::{Compute, Definition, Number},
    operation::Constants,
};
use crate::{
    DType,
    backend::{
        Launch, View,
        cpu::{Access, BLOCK, PARALLEL, Scalar, TASK, Walk},
    },
    bf16, f16,
};

/// Runs a kernel; `constants` is empty if every parameter is a tensor.
pub(super) fn run(definition: &Definition, constants: &Constants, access: &Access<'_>, launch: &Launch) {
    let mut views = launch.inputs.iter();
    let sources: SmallVec<[Source<'_>; 4]> = (0..definition.inputs.len())
        .map(|i| match constants.get(i).copied().flatten() {
            Some(number) => Source::Constant(number),
            None => views.next().map_or(Source::None, |view| Source::new(access, view)),
        })
        .collect();
    let Some(first) = launch.outputs.first() else { return };
    let count = first.layout.count();
    let mut tasks: SmallVec<[Task<'_>; 1]> = SmallVec::new();
    let length = if count < PARALLEL { count } else { TASK };
    for start in (0..count).step_by(length.max(1)) {
        tasks.push(Task { start, outputs: SmallVec::new() });
    }
    for (view, compute) in launch.outputs.iter().zip(definition.outputs) {
        let size = view.dtype.size();
        let kind = Kind { dtype: view.dtype, compute: *compute };
        for (task, bytes) in tasks.iter_mut().zip(place(access, view).chunks_mut(length * size)) {
            task.outputs.push((kind, bytes));
        }
    }
    let run = |task: Task<'_>| task.run(definition, &sources);
    match tasks.len() {
        0 | 1 => tasks.into_iter().for_each(run),
        _ => tasks.into_vec().into_par_iter().for_each(run),
    }
}

/// The bytes of an output.
pub(super) fn place<'a>(access: &Access<'a>, view: &View) -> &'a mut [u8] {
    match view.dtype.size() {
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
    I32(Walk, &'a [i32]),
    U32(Walk, &'a [u32]),
    U8(Walk, &'a [u8]),
    None,
}

/// The buffer in which values of a block are gathered and converted.
struct Buffer {
    raw: [u32; BLOCK],
    converted: [u32; BLOCK],
}

impl Buffer {
    fn new() -> Self {
        Self { raw: [0; BLOCK], converted: [0; BLOCK] }
    }
}

impl<'a> Source<'a> {
    pub(super) fn new(access: &Access<'a>, view: &View) -> Self {
        let walk = Walk::new(&view.layout);
        match view.dtype {
            DType::F32 => Self::F32(walk, access.slice(view)),
            DType::F16 => Self::F16(walk, access.slice(view)),
            DType::Bf16 => Self::Bf16(walk, access.slice(view)),
            DType::I32 => Self::I32(walk, access.slice(view)),
            DType::U32 => Self::U32(walk, access.slice(view)),
            DType::U8 | DType::Bool => Self::U8(walk, access.slice(view)),
        }
    }

    /// The elements `start .. start + len`, of which both buffers have a word each.
    pub(super) fn read<'b>(
        &'b self,
        start: usize,
        len: usize,
        raw: &'b mut [u32],
        converted: &'b mut [u32],
    ) -> Input<'b> {
        let buffer = (raw, converted);
        match self {
            Self::Constant(number) => constant(*number, len, buffer.0),
            Self::F32(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::F16(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::Bf16(walk, src) => Input::F32(read(walk, src, start, len, buffer)),
            Self::I32(walk, src) => Input::I32(read(walk, src, start, len, buffer)),
            Self::U32(walk, src) => Input::U32(read(walk, src, start, len, buffer)),
            Self::U8(walk, src) => Input::U8(read(walk, src, start, len, buffer)),
            Self::None => Input::U8(&[]),
        }
    }
}

fn read<'b, T: Scalar>(
    walk: &Walk,
    src: &'b [T],
    start: usize,
    len: usize,
    (raw, converted): (&'b mut [u32], &'b mut [u32]),
) -> &'b [T::Acc] {
    walk.read_into(src, start, &mut prefix(raw)[..len], &mut prefix(converted)[..len])
}

/// A buffer as values of a type that is at most as large.
fn prefix<T: Pod>(words: &mut [u32]) -> &mut [T] {
    cast_slice_mut(words)
}

fn constant(number: Number, len: usize, buffer: &mut [u32]) -> Input<'_> {
    fn filled<T: Pod>(value: T, len: usize, buffer: &mut [u32]) -> &[T] {
        let to = &mut prefix(buffer)[..len];
        to.fill(value);
        to
    }
    match number.compute {
        Compute::F32 => Input::F32(filled(f32::from_bits(number.bits), len, buffer)),
        Compute::I32 => Input::I32(filled(number.bits.cast_signed(), len, buffer)),
        Compute::U32 => Input::U32(filled(number.bits, len, buffer)),
        Compute::U8 | Compute::Bool => Input::U8(filled(number.bits as u8, len, buffer)),
    }
}

/// The elements of the outputs from one on.
struct Task<'a> {
    start: usize,
    outputs: SmallVec<[(Kind, &'a mut [u8]); 2]>,
}

impl Task<'_> {
    fn run(mut self, definition: &Definition, sources: &[Source<'_>]) {
        let mut buffers: SmallVec<[Buffer; 2]> = sources.iter().map(|_| Buffer::new()).collect();
        let mut results: SmallVec<[[f32; BLOCK]; 1]> =
            self.outputs.iter().filter(|(kind, _)| kind.is_converted()).map(|_| [0.0; BLOCK]).collect();
        let count = self.outputs.first().map_or(0, |(kind, bytes)| bytes.len() / kind.dtype.size());
        for first in (0..count).step_by(BLOCK) {
            let len = BLOCK.min(count - first);
            let mut block = Block::new();
            for (source, buffer) in sources.iter().zip(&mut buffers) {
                let Buffer { raw, converted } = buffer;
                block.read(source.read(self.start + first, len, raw, converted));
            }
            let mut converted = results.iter_mut();
            for (kind, bytes) in &mut self.outputs {
                let size = kind.dtype.size();
                let bytes = &mut bytes[first * size..(first + len) * size];
                match if kind.is_converted() { converted.next() } else { None } {
                    Some(values) => block.write(Output::F32(&mut values[..len])),
                    None => block.write(kind.output(bytes)),
                }
            }
            (definition.block)(&mut block);
            drop(block);
            for ((kind, bytes), values) in
                self.outputs.iter_mut().filter(|(kind, _)| kind.is_converted()).zip(&results)
            {
                kind.store(&mut bytes[first * 2..(first + len) * 2], &values[..len]);
            }
        }
    }
}

impl Kind {
    /// If it is computed in another type than it is stored in.
    pub(super) fn is_converted(self) -> bool {
        matches!(self.dtype, DType::F16 | DType::Bf16)
    }

    pub(super) fn output(self, bytes: &mut [u8]) -> Output<'_> {
        match self.compute {
            Compute::F32 => Output::F32(cast_slice_mut(bytes)),
            Compute::I32 => Output::I32(cast_slice_mut(bytes)),
            Compute::U32 => Output::U32(cast_slice_mut(bytes)),
            Compute::U8 | Compute::Bool => Output::U8(bytes),
        }
    }

    pub(super) fn store(self, bytes: &mut [u8], values: &[f32]) {
        match self.dtype {
            DType::F16 => cast_slice_mut::<u8, f16>(bytes).convert_from_f32_slice(values),
            DType::Bf16 => cast_slice_mut::<u8, bf16>(bytes).convert_from_f32_slice(values),
            _ => {}
        }
    }
}
