//! Attention: which kernel takes it, and its launch.

use bytemuck::{Pod, Zeroable};

use self::{
    plan::{DECODE_TIMES, EACH, EACH_WIDE, Kind, Plan},
    prefill::prefill,
};
use super::operation::{AlibiKind, Attention, Extra, MaskKind, nearest_power};
use crate::{
    DType, Error, Result,
    backend::{
        Launch, View,
        cuda::{
            DeviceProperties,
            kernels::{Grid, Kernel, SourceFile, Submit, submit},
        },
    },
};

mod plan;
mod prefill;
#[cfg(test)]
mod tests;

/// The header that all sources of few queries include.
const SHARED: &str = include_str!("attention.cuh");
/// One query against a long cache, split over blocks: any heads, and what changes the scores.
const DECODE_FILE: SourceFile = SourceFile::ours("attention/decode.cu", include_str!("decode.cu"))
    .split()
    .with_header("attention.cuh", SHARED);
/// Heads of common sizes on tensor cores.
const TILES_FILE: SourceFile = SourceFile::ours("attention/decode_tiles.cu", include_str!("decode_tiles.cu"))
    .split()
    .with_header("attention.cuh", SHARED);
/// And in f32.
const FLOATS_FILE: SourceFile =
    SourceFile::ours("attention/decode_floats.cu", include_str!("decode_floats.cu"))
        .split()
        .with_header("attention.cuh", SHARED);

static DECODE: SourceFile = DECODE_FILE;
static TILES: SourceFile = TILES_FILE;
static FLOATS: SourceFile = FLOATS_FILE;
// With what changes the scores besides the mask, which costs others nothing.
static DECODE_VARIANT: SourceFile = DECODE_FILE.with_options(&["-DVARIANT=1"]);
static TILES_VARIANT: SourceFile = TILES_FILE.with_options(&["-DVARIANT=1"]);
static FLOATS_VARIANT: SourceFile = FLOATS_FILE.with_options(&["-DVARIANT=1"]);
// Large heads, with or without a variant.
static DECODE_WIDE: SourceFile = DECODE_FILE.with_options(&["-DVARIANT=1", "-DWIDE=1"]);

/// The largest head.
const MAX_SIZE: usize = 32 * EACH_WIDE;
/// Threads of a block.
const THREADS: u32 = 128;
/// The largest head on tensor cores.
const TILED_SIZE: usize = 256;

/// Mirrors `Params` of `attention.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    q: u64,
    k: u64,
    v: u64,
    y: u64,
    limits: u64,
    real: u64,
    partials: u64,
    q_strides: [u64; 4],
    k_strides: [u64; 4],
    v_strides: [u64; 4],
    limit_strides: [u64; 2],
    times: u32,
    keys: u32,
    key_heads: u32,
    group: u32,
    size: u32,
    size_v: u32,
    mask: u32,
    splits: u32,
    chunks: u32,
    lanes: u32,
    vector: u32,
    scale: f32,
}
const _: () = assert!(size_of::<Params>() == 216);

/// The rest of `Params` with VARIANT.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Added {
    bias: u64,
    slopes: u64,
    sinks: u64,
    bias_strides: [u64; 4],
    slope_stride: u64,
    sink_stride: u64,
    window: u32,
    left: u32,
    right: u32,
    alibi: u32,
    soft_cap: f32,
    pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct VariantParams {
    params: Params,
    added: Added,
}
const _: () = assert!(size_of::<VariantParams>() == 312);

impl Added {
    fn new(op: &Attention, extra: &Extra<'_>, heads: usize) -> Self {
        let address = |view: Option<&View>| view.map_or(0, |view| view.addr);
        let stride = |view: Option<&View>| view.map_or(0, |view| view.layout.strides()[0] as u64);
        let (left, right) = op.variant.window.unwrap_or_default();
        Self {
            bias: address(extra.bias),
            slopes: address(extra.slopes),
            sinks: address(extra.sinks),
            bias_strides: extra.bias.map_or([0; 4], strides),
            slope_stride: stride(extra.slopes),
            sink_stride: stride(extra.sinks),
            window: op.variant.window.is_some().into(),
            left,
            right,
            alibi: if op.variant.alibi == AlibiKind::None { 0 } else { nearest_power(heads) as u32 },
            soft_cap: op.variant.soft_cap.unwrap_or(0.0),
            pad: 0,
        }
    }
}

/// The strides of up to four dimensions.
fn strides(view: &View) -> [u64; 4] {
    let mut out = [0; 4];
    for (out, &stride) in out.iter_mut().zip(view.layout.strides()) {
        *out = stride as u64;
    }
    out
}

/// `[B, T, Hq, D]` and so on, by name.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    batches: usize,
    times: usize,
    keys: usize,
    key_heads: usize,
    group: usize,
    size: usize,
    size_v: usize,
}

impl Sizes {
    fn of(inputs: &[View]) -> Option<Self> {
        let (&[batches, times, heads, size], &[_, keys, key_heads, size_v]) =
            (inputs.first()?.layout.shape(), inputs.get(2)?.layout.shape())
        else {
            return None;
        };
        let group = heads.checked_div(key_heads)?;
        Some(Self { batches, times, keys, key_heads, group, size, size_v })
    }

    fn rows(&self) -> usize {
        self.times * self.group
    }

    /// Returns whether heads are large.
    fn are_wide(&self) -> bool {
        self.size.max(self.size_v) > 32 * EACH
    }
}

/// Returns whether heads can be read 16 bytes at a time, in multiples of 8 elements.
fn vector(view: &View) -> bool {
    let (shape, strides) = (view.layout.shape(), view.layout.strides());
    let wide = 16 / view.dtype.size();
    view.addr.is_multiple_of(16)
        && shape[3].is_multiple_of(EACH)
        && strides[3] == 1
        && (0..3).all(|a| shape[a] <= 1 || strides[a].is_multiple_of(wide))
}

pub(super) fn workspace_bytes(props: &DeviceProperties, inputs: &[View], op: &Attention) -> u64 {
    let Some(z) = Sizes::of(inputs) else { return 0 };
    let plan = Plan::new(props, inputs[0].dtype, &z, op.is_plain(), inputs[..3].iter().all(vector));
    if plan.splits == 1 || plan.is_cluster {
        return 0;
    }
    (z.batches * z.key_heads * z.rows() * plan.splits * (z.size_v + 2) * size_of::<f32>()) as u64
}

pub(super) fn launch(gpu: &mut dyn Submit, launch: &Launch, op: Attention) -> Result<()> {
    let Some(z) = Sizes::of(&launch.inputs) else { return Ok(()) };
    if z.size.max(z.size_v) > MAX_SIZE {
        let reason =
            format!("heads of {} and {} elements; on a GPU they may have up to {MAX_SIZE}", z.size, z.size_v);
        return Err(Error::Argument { op: launch.op.name(), reason });
    }
    let (q, k, v, y) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2], &launch.outputs[0]);
    let extra = op.extra(&launch.inputs);
    let is_plain = op.is_plain();
    let in_tiles = [q, k, v].into_iter().all(vector);
    let plan = Plan::new(gpu.props(), q.dtype, &z, is_plain, in_tiles);
    let params = VariantParams {
        params: parameters(launch, &op, &extra, &z, &plan),
        added: Added::new(&op, &extra, z.key_heads * z.group),
    };
    if plan.splits == 1 && in_tiles && y.addr.is_multiple_of(16) && suits_tiles(q.dtype, &z) {
        return prefill(gpu, q, &z, params, is_plain);
    }
    decode(gpu, q, &z, plan, &params, is_plain)
}

fn parameters(launch: &Launch, op: &Attention, extra: &Extra<'_>, z: &Sizes, plan: &Plan) -> Params {
    let (q, k, v, y) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2], &launch.outputs[0]);
    let limit_strides = extra.limits.map_or([0; 4], strides);
    Params {
        q: q.addr,
        k: k.addr,
        v: v.addr,
        y: y.addr,
        limits: extra.limits.map_or(0, |l| l.addr),
        real: extra.real.map_or(0, |count| count.addr),
        partials: launch.workspace,
        q_strides: strides(q),
        k_strides: strides(k),
        v_strides: strides(v),
        limit_strides: [limit_strides[0], limit_strides[1]],
        times: z.times as u32,
        keys: z.keys as u32,
        key_heads: z.key_heads as u32,
        group: z.group as u32,
        size: z.size as u32,
        size_v: z.size_v as u32,
        mask: match op.mask {
            MaskKind::None => 0,
            MaskKind::Causal => 1,
            MaskKind::Lengths => 2,
            MaskKind::Positions => 3,
        },
        splits: plan.splits as u32,
        chunks: plan.chunks as u32,
        lanes: plan.lanes as u32,
        vector: (vector(k) && vector(v)).into(),
        scale: op.scale,
    }
}

/// Returns whether tensor cores are worthwhile, and support such heads.
fn suits_tiles(dtype: DType, z: &Sizes) -> bool {
    let fits = |size: usize| (16..=TILED_SIZE).contains(&size) && size.is_multiple_of(16);
    dtype != DType::F32 && z.times > DECODE_TIMES && fits(z.size) && fits(z.size_v)
}

/// Launches with the parameters that the source takes.
fn send(
    gpu: &mut dyn Submit,
    kernel: Kernel,
    grid: Grid,
    params: &VariantParams,
    is_plain: bool,
) -> Result<()> {
    if is_plain { submit(gpu, kernel, grid, &params.params) } else { submit(gpu, kernel, grid, params) }
}

fn decode(
    gpu: &mut dyn Submit,
    q: &View,
    z: &Sizes,
    plan: Plan,
    params: &VariantParams,
    is_plain: bool,
) -> Result<()> {
    let (source, is_plain) = match (plan.kind, z.are_wide(), is_plain) {
        (Kind::Tiles, _, true) => (&TILES, true),
        (Kind::Tiles, _, false) => (&TILES_VARIANT, false),
        (Kind::Floats, _, true) => (&FLOATS, true),
        (Kind::Floats, _, false) => (&FLOATS_VARIANT, false),
        (Kind::Any, true, _) => (&DECODE_WIDE, false),
        (Kind::Any, false, false) => (&DECODE_VARIANT, false),
        (Kind::Any, false, true) => (&DECODE, true),
    };
    let grid = Grid {
        blocks: [(z.batches * z.key_heads * plan.chunks * plan.splits) as u32, 1, 1],
        threads: plan.threads,
        shared: plan.shared_bytes(z) as u32,
        cluster: plan.blocks_of_cluster() as u32,
    };
    send(gpu, Kernel::of(source, q.dtype, plan.kernel()), grid, params, is_plain)?;
    if plan.splits == 1 || plan.is_cluster {
        return Ok(());
    }
    let source = match plan.kind {
        Kind::Any => source,
        _ if is_plain => &DECODE,
        _ => &DECODE_VARIANT,
    };
    let rows = z.batches * z.key_heads * z.rows();
    let join = Kernel::of(source, q.dtype, "attend_join");
    send(gpu, join, Grid::line(rows as u32, THREADS), params, is_plain)
}
