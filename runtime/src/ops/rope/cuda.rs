//! Rotary embedding.

use bytemuck::{Pod, Zeroable};

use super::{
    super::scatter::cuda_places::Places,
    operation::{Rope, RopeStyle},
    scaling::Divisors,
};
use crate::{
    Error, Result,
    backend::{
        Launch, View,
        cuda::kernels::{Grid, Kernel, SourceFile, Submit, submit},
    },
};

/// The angles, for every source that turns pairs.
pub(in crate::ops) const ANGLES: &str = include_str!("rope.cuh");

static SOURCE: SourceFile = SourceFile::ours("rope/rope.cu", include_str!("rope.cu"))
    .split()
    .with_header("rope.cuh", ANGLES)
    // As in kernels in which a rotation is a part.
    .with_options(&["--fmad=false"]);

/// Threads of a block.
const THREADS: u32 = 256;

/// Mirrors `RopeParams` of `rope.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    x: u64,
    y: u64,
    positions: u64,
    rows: u64,
    times: u64,
    heads: u64,
    size: u64,
    strides: [u64; 4],
    position_strides: [u64; 3],
    log2_theta: f64,
    inverse: f64,
    offset: f64,
    per_pair: f64,
    per_frequency: f64,
    magnitude: f64,
    growth: f64,
    original: f64,
    exponent: f64,
    real: [u64; 2],
    half: u32,
    interleaved: u32,
    sections: u32,
    take_turns: u32,
    pairs: [u32; 4],
}
const _: () = assert!(size_of::<Params>() == 232);

/// Mirrors `ScatterParams` of `rope.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ScatterParams {
    rope: Params,
    to: Places,
}
const _: () = assert!(size_of::<ScatterParams>() == 312);

/// Mirrors `DIVISORS` of `rope.cu`.
const DIVISORS: usize = 128;

/// Mirrors `Divisors` of `rope.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct DivisorsOf {
    short: [f32; DIVISORS],
    long: [f32; DIVISORS],
}

/// Mirrors `LongParams` of `rope.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct LongParams {
    rope: Params,
    divisors: DivisorsOf,
}
const _: () = assert!(size_of::<LongParams>() == 1256);

/// Mirrors `LongScatterParams` of `rope.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct LongScatterParams {
    scatter: ScatterParams,
    divisors: DivisorsOf,
}
const _: () = assert!(size_of::<LongScatterParams>() == 1336);

impl DivisorsOf {
    /// # Errors
    /// Returns [`Error::Argument`] if there are too many.
    fn new(op: &'static str, all: &Divisors) -> Result<Self> {
        let pairs = all.short.len();
        if pairs > DIVISORS {
            let reason = format!("divisors of {pairs} pairs; on a GPU there may be up to {DIVISORS}");
            return Err(Error::Argument { op, reason });
        }
        let mut new = Self::zeroed();
        new.short[..pairs].copy_from_slice(&all.short);
        new.long[..pairs].copy_from_slice(&all.long);
        Ok(new)
    }
}

impl Params {
    /// Those of the angles, of `[batches, times]` rows of heads of `size` elements.
    fn of(rotation: Rope, [batches, times]: [usize; 2], size: usize, position_strides: [usize; 3]) -> Self {
        let Rope { style, dim, frequencies, sections, .. } = rotation;
        Self {
            rows: (batches * times) as u64,
            times: times as u64,
            size: size as u64,
            position_strides: position_strides.map(|s| s as u64),
            log2_theta: frequencies.theta.log2(),
            inverse: frequencies.inverse,
            offset: frequencies.offset,
            per_pair: frequencies.per_pair,
            per_frequency: frequencies.per_frequency,
            magnitude: frequencies.magnitude,
            growth: frequencies.dynamic.map_or(0.0, |dynamic| dynamic.factor),
            original: match (frequencies.dynamic, frequencies.long) {
                (Some(dynamic), _) => f64::from(dynamic.original),
                (None, Some(long)) => f64::from(long.original),
                (None, None) => 0.0,
            },
            exponent: frequencies.dynamic.map_or(0.0, |dynamic| dynamic.exponent),
            half: (dim / 2) as u32,
            interleaved: (style == RopeStyle::Interleaved).into(),
            sections: sections.count as u32,
            take_turns: sections.take_turns.into(),
            pairs: sections.pairs.map(|n| n as u32),
            ..Self::zeroed()
        }
    }
}

/// The words of `RopeParams` for the angles of rows of `[batches, times]`, at positions with these strides.
pub(in crate::ops) fn angles(
    rotation: Rope,
    positions: u64,
    rows: [usize; 2],
    size: usize,
    position_strides: [usize; 3],
) -> [u64; size_of::<Params>() / 8] {
    bytemuck::cast(Params { positions, ..Params::of(rotation, rows, size, position_strides) })
}

pub(super) fn rope(gpu: &mut dyn Submit, launch: &Launch, rotation: Rope) -> Result<()> {
    let mut counts = launch.inputs[2..].iter();
    let real = rotation.padded.map(|given| if given { counts.next() } else { None });
    let Some((params, grid)) = rotate(gpu, launch, rotation, real) else { return Ok(()) };
    if let Some(long) = rotation.frequencies.long {
        let params = LongParams { rope: params, divisors: DivisorsOf::new("rope", long.divisors)? };
        return submit(gpu, Kernel::of(&SOURCE, launch.inputs[0].dtype, "rope_long"), grid, &params);
    }
    submit(gpu, Kernel::of(&SOURCE, launch.inputs[0].dtype, "rope"), grid, &params)
}

pub(super) fn rope_scatter(gpu: &mut dyn Submit, launch: &Launch, rotation: Rope) -> Result<()> {
    let Some((rope, grid)) = rotate(gpu, launch, rotation, [None, launch.inputs.get(3)]) else {
        return Ok(());
    };
    let to = Places::find(gpu, launch, &launch.inputs[2], launch.inputs.get(3))?;
    let params = ScatterParams { rope, to };
    if let Some(long) = rotation.frequencies.long {
        let divisors = DivisorsOf::new("rope_scatter", long.divisors)?;
        let params = LongScatterParams { scatter: params, divisors };
        return submit(gpu, Kernel::of(&SOURCE, launch.inputs[0].dtype, "rope_scatter_long"), grid, &params);
    }
    submit(gpu, Kernel::of(&SOURCE, launch.inputs[0].dtype, "rope_scatter"), grid, &params)
}

fn rotate(
    gpu: &dyn Submit,
    launch: &Launch,
    Rope { style, dim, frequencies, sections, .. }: Rope,
    real: [Option<&View>; 2],
) -> Option<(Params, Grid)> {
    let (x, positions, y) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let (&[batches, times, heads, size], &[s0, s1, s2, s3]) = (x.layout.shape(), x.layout.strides()) else {
        return None;
    };
    let &[p0, p1, p2] = positions.layout.strides() else { return None };
    let rows = (batches * times) as u64;
    let rotation = Rope { style, dim, frequencies, sections, padded: [false; 2] };
    let params = Params {
        x: x.addr,
        y: y.addr,
        positions: positions.addr,
        heads: heads as u64,
        strides: [s0, s1, s2, s3].map(|s| s as u64),
        real: real.map(|count| count.map_or(0, |count| count.addr)),
        ..Params::of(rotation, [batches, times], size, [p0, p1, p2])
    };
    let blocks = rows.clamp(1, 1 << 20) as u32;
    // Few positions: their heads are dealt out, so that more of the device works.
    let parts = gpu.props().multiprocessors.div_ceil(blocks).min((heads as u32).div_ceil(4)).max(1);
    let grid = Grid { blocks: [blocks, parts, 1], threads: THREADS, shared: 0, cluster: 1 };
    Some((params, grid))
}
