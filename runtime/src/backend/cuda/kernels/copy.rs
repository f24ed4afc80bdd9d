//! Elements placed without computing with them, and elements made from nothing: `copy.cu`.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use smallvec::SmallVec;

use super::{
    Grid, Kernel, SourceFile, Submit, submit,
    walk::{Dim, Dims, THREADS, Walk},
};
use crate::{
    DType, Result,
    backend::{View, cpu::round_to_odd},
    base::rank::MAX_RANK,
};

/// Copies, padding, filling, joining.
static SOURCE: SourceFile = SourceFile::ours("copy.cu", include_str!("copy.cu"));

#[cfg(test)]
mod tests;

/// Inputs that one kernel joins.
const PARTS: usize = 8;

/// Mirrors `Move`, which is all of `CopyParams` too.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Move {
    from: u64,
    to: u64,
    count: u64,
    dims: Dims,
    strides: [[u64; MAX_RANK]; 2],
}
const _: () = assert!(size_of::<Move>() == 176);

/// Mirrors `JoinParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct JoinParams {
    parts: [Move; PARTS],
}
const _: () = assert!(size_of::<JoinParams>() == 1408);

/// Mirrors `FlatParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct FlatParams {
    from: u64,
    to: u64,
    bytes: u64,
}
const _: () = assert!(size_of::<FlatParams>() == 24);

/// Mirrors `PadParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PadParams {
    from: u64,
    to: u64,
    count: u64,
    dims: Dims,
    limits: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}
const _: () = assert!(size_of::<PadParams>() == 176);

/// Mirrors `FillParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct FillParams {
    to: u64,
    bytes: u64,
    pattern: u32,
    pad: u32,
}
const _: () = assert!(size_of::<FillParams>() == 24);

/// Mirrors `ArangeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ArangeParams {
    to: u64,
    count: u64,
    start: f64,
    step: f64,
}
const _: () = assert!(size_of::<ArangeParams>() == 32);

/// Of kernels for words of 1, 2, 4, 8 and 16 bytes, the one for `word`.
pub(super) fn for_word(names: [&'static str; 5], word: u64) -> &'static str {
    names[(word.trailing_zeros() as usize).min(4)]
}

fn line(gpu: &dyn Submit, items: u64) -> Grid {
    Grid::line(gpu.props().blocks_for(items, THREADS), THREADS)
}

pub(crate) fn copy(gpu: &mut dyn Submit, x: &View, y: &View) -> Result<()> {
    let size = y.dtype.size() as u64;
    let walk = Walk::of([x, y]);
    if walk.is_flat() && (x.addr | y.addr).is_multiple_of(16) {
        let params = FlatParams { from: x.addr, to: y.addr, bytes: walk.count() * size };
        let grid = line(gpu, params.bytes.div_ceil(16));
        return submit(gpu, Kernel::plain(&SOURCE, "copy_flat"), grid, &params);
    }
    let word = walk.word(size, &[x.addr, y.addr]);
    let params = part(walk.in_words(size, word), x.addr, y.addr);
    let name = for_word(["copy_1", "copy_2", "copy_4", "copy_8", "copy_16"], word);
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}

fn part(walk: Walk<2>, from: u64, to: u64) -> Move {
    Move { from, to, count: walk.count(), dims: walk.dims(), strides: walk.strides() }
}

/// Each input is copied to its part of the output.
pub(crate) fn concat(gpu: &mut dyn Submit, inputs: &[View], y: &View, axis: usize) -> Result<()> {
    const NAMES: [&str; 5] = ["join_1", "join_2", "join_4", "join_8", "join_16"];
    let size = y.dtype.size() as u64;
    let stride = y.layout.strides()[axis] as u64 * size;
    let mut to = y.addr;
    let mut moves: SmallVec<[(Walk<2>, u64, u64); PARTS]> = SmallVec::new();
    for x in inputs {
        let here = to;
        to += x.layout.shape()[axis] as u64 * stride;
        if x.layout.count() > 0 {
            let walk = Walk::new(x.layout.shape(), [x.layout.strides(), y.layout.strides()]);
            moves.push((walk, x.addr, here));
        }
    }
    for moves in moves.chunks(PARTS) {
        let words = moves.iter().map(|(walk, from, to)| walk.word(size, &[*from, *to]));
        let word = words.min().unwrap_or(size);
        let mut params = JoinParams::zeroed();
        for (part_of, (walk, from, to)) in params.parts.iter_mut().zip(moves) {
            *part_of = part(walk.clone().in_words(size, word), *from, *to);
        }
        let most = params.parts.iter().map(|p| p.count).max().unwrap_or(0);
        let mut grid = line(gpu, most);
        grid.blocks[1] = moves.len() as u32;
        submit(gpu, Kernel::plain(&SOURCE, for_word(NAMES, word)), grid, &params)?;
    }
    Ok(())
}

pub(crate) fn pad(gpu: &mut dyn Submit, x: &View, y: &View) -> Result<()> {
    if x.layout.count() == 0 {
        return fill_pattern(gpu, y, 0);
    }
    let size = y.dtype.size() as u64;
    let (walk, mut limits) = padded(x, y);
    let word = match (walk.0.first(), limits.first()) {
        (Some(_), Some(&limit)) => walk.word(size, &[x.addr, y.addr, limit * size]),
        _ => size,
    };
    let walk = walk.in_words(size, word);
    if let Some(limit) = limits.first_mut() {
        *limit = *limit * size / word;
    }
    let mut params = PadParams {
        from: x.addr,
        to: y.addr,
        count: walk.count(),
        dims: walk.dims(),
        limits: [1; MAX_RANK],
        strides: walk.strides()[0],
    };
    params.limits[..limits.len()].copy_from_slice(&limits);
    let name = for_word(["pad_1", "pad_2", "pad_4", "pad_8", "pad_16"], word);
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}

/// Returns the output's dimensions with the input's strides, and the extent of the input in each. Two are
/// merged if the inner one has no padding.
fn padded(x: &View, y: &View) -> (Walk<1>, SmallVec<[u64; MAX_RANK]>) {
    let mut walk = Walk(SmallVec::<[Dim<1>; MAX_RANK]>::new());
    let mut limits = SmallVec::<[u64; MAX_RANK]>::new();
    for axis in (0..y.layout.rank()).rev() {
        let (limit, size) = (x.layout.shape()[axis] as u64, y.layout.shape()[axis] as u64);
        let stride = x.layout.strides()[axis] as u64;
        if size == 1 {
            continue;
        }
        match (walk.0.last_mut(), limits.last_mut()) {
            (Some(last), Some(reach)) if last.size == *reach && stride == last.size * last.strides[0] => {
                last.size *= size;
                *reach *= limit;
            }
            _ => {
                walk.0.push(Dim { size, strides: [stride] });
                limits.push(limit);
            }
        }
    }
    (walk, limits)
}

/// The bits of `value`, repeated to four bytes.
fn pattern(dtype: DType, value: f64) -> u32 {
    let pair = |bits: u16| u32::from(bits) * 0x1_0001;
    let quad = |bits: u8| u32::from(bits) * 0x0101_0101;
    match dtype {
        DType::F32 => (value as f32).to_bits(),
        DType::F16 => pair(f16::from_f32(round_to_odd(value)).to_bits()),
        DType::Bf16 => pair(bf16::from_f32(round_to_odd(value)).to_bits()),
        DType::I32 => (value as i32).cast_unsigned(),
        DType::U32 => value as u32,
        DType::U8 => quad(value as u8),
        DType::Bool => quad((value != 0.0).into()),
    }
}

pub(crate) fn fill(gpu: &mut dyn Submit, y: &View, value: f64) -> Result<()> {
    fill_pattern(gpu, y, pattern(y.dtype, value))
}

fn fill_pattern(gpu: &mut dyn Submit, y: &View, pattern: u32) -> Result<()> {
    let bytes = (y.layout.count() * y.dtype.size()) as u64;
    let params = FillParams { to: y.addr, bytes, pattern, pad: 0 };
    let grid = line(gpu, bytes.div_ceil(16));
    submit(gpu, Kernel::plain(&SOURCE, "fill"), grid, &params)
}

pub(crate) fn arange(gpu: &mut dyn Submit, y: &View, start: f64, step: f64) -> Result<()> {
    let name = match y.dtype {
        DType::F32 => "arange_f32",
        DType::F16 => "arange_f16",
        DType::Bf16 => "arange_bf16",
        DType::I32 => "arange_i32",
        DType::U32 => "arange_u32",
        DType::U8 => "arange_u8",
        DType::Bool => "arange_boolean",
    };
    let params = ArangeParams { to: y.addr, count: y.layout.count() as u64, start, step };
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}
