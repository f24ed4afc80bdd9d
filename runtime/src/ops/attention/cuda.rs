//! Attention: which kernel takes it, and over how many blocks.

use bytemuck::{Pod, Zeroable};

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

#[cfg(test)]
mod tests;

/// The header that both sources include.
const SHARED: &str = include_str!("attention.cuh");
/// One query against a long cache, split over blocks.
const DECODE_FILE: SourceFile =
    SourceFile::ours("attention/decode.cu", include_str!("decode.cu")).with_header("attention.cuh", SHARED);
/// Many queries, in tiles.
const PREFILL_FILE: SourceFile =
    SourceFile::ours("attention/prefill.cu", include_str!("prefill.cu")).with_header("attention.cuh", SHARED);

static DECODE: SourceFile = DECODE_FILE;
static PREFILL: SourceFile = PREFILL_FILE;
// With what changes the scores besides the mask, which costs others nothing.
static DECODE_VARIANT: SourceFile = DECODE_FILE.with_options(&["-DVARIANT=1"]);
static PREFILL_VARIANT: SourceFile = PREFILL_FILE.with_options(&["-DVARIANT=1"]);
// Large heads, with or without a variant.
static DECODE_WIDE: SourceFile = DECODE_FILE.with_options(&["-DVARIANT=1", "-DWIDE=1"]);
static PREFILL_WIDE: SourceFile = PREFILL_FILE.with_options(&["-DVARIANT=1", "-DWIDE=1"]);

/// Threads of a block of the decode kernels.
const THREADS: u32 = 128;
/// Elements of a head that a lane holds.
const EACH: usize = 8;
/// Of a large head.
const EACH_WIDE: usize = 32;
/// The largest head.
const MAX_SIZE: usize = 32 * EACH_WIDE;
/// The number of keys that justify a separate block.
const KEYS: usize = 64;
/// Most parts of the keys.
const SPLITS: usize = 64;
/// Most blocks of a cluster, each of which has a part.
const CLUSTER: usize = 8;
/// Most bytes of shared memory of a block in a cluster: every device that has clusters has them.
const MOST_SHARED: usize = 96 << 10;

/// Queries up to which the decode kernel takes a call.
const DECODE_TIMES: usize = 8;
/// Queries of a block on tensor cores.
const QUERIES: usize = 64;
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

/// The split of rows and keys: a function of shapes alone.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Rows that a block takes.
    rows: usize,
    /// Blocks that share the rows of a key head.
    chunks: usize,
    /// Parts of the keys.
    splits: usize,
    /// Whether the blocks of a row's parts are a cluster, of which one adds them; otherwise another kernel does.
    is_cluster: bool,
    /// Lanes that share a key.
    lanes: usize,
    /// Elements of a head that a lane holds.
    each: usize,
}

impl Plan {
    fn new(props: &DeviceProperties, dtype: DType, z: &Sizes, is_plain: bool) -> Self {
        // As many rows as registers hold.
        let (most, each) = match (z.are_wide(), is_plain) {
            (true, _) => (1, EACH_WIDE),
            (false, true) => (8, EACH),
            (false, false) => (4, EACH),
        };
        let mut rows = z.rows().next_power_of_two().clamp(1, most);
        let is_cluster = props.capability >= (9, 0);
        // Few sequences: a block with fewer rows ends sooner, and there is room for more blocks, which read the keys again.
        let pairs = z.batches * z.key_heads;
        while is_cluster
            && rows > 1
            && pairs * z.rows().div_ceil(rows) * CLUSTER < 2 * props.multiprocessors as usize
        {
            rows /= 2;
        }
        let chunks = z.rows().div_ceil(rows);
        let blocks = (z.batches * z.key_heads * chunks).max(1);
        // Blocks that run on a multiprocessor at the same time: those of few rows have fewer registers.
        let at_once = if rows <= 2 { 5 } else { 3 };
        let wanted = (props.multiprocessors as usize * at_once / blocks).min(z.keys.div_ceil(KEYS));
        let splits =
            if is_cluster { nearest_power(wanted.clamp(1, CLUSTER)) } else { wanted.clamp(1, SPLITS) };
        let lanes = z.size.max(z.size_v).div_ceil(each).next_power_of_two();
        // Tiles are not split, so operands that they do not support because of strides are not split either.
        let splits = if suits_tiles(dtype, z) { 1 } else { splits };
        let mut plan = Self { rows, chunks, splits, is_cluster, lanes, each };
        while plan.blocks_of_cluster() > 1 && plan.shared_bytes(z.size_v) > MOST_SHARED {
            plan.splits /= 2;
        }
        plan
    }

    /// Blocks that share the keys as a cluster; 1 without one.
    fn blocks_of_cluster(&self) -> usize {
        if self.is_cluster { self.splits } else { 1 }
    }

    /// Shared memory of a block: the queries, what its warps have, and what the blocks of its cluster have.
    fn shared_bytes(&self, size_v: usize) -> usize {
        let (width, warps) = (self.lanes * self.each, THREADS as usize / 32);
        let cluster = self.blocks_of_cluster();
        let parts = if cluster > 1 { cluster * (size_v + 2) } else { 0 };
        self.rows * (width + warps * (width + 2) + parts) * size_of::<f32>()
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
    let plan = Plan::new(props, inputs[0].dtype, &z, op.is_plain());
    if plan.splits == 1 || plan.is_cluster {
        return 0;
    }
    (z.batches * z.key_heads * z.rows() * plan.splits * (z.size_v + 2) * size_of::<f32>()) as u64
}

pub(super) fn launch(gpu: &mut dyn Submit, launch: &Launch, op: Attention) -> Result<()> {
    let Some(z) = Sizes::of(&launch.inputs) else { return Ok(()) };
    if z.size.max(z.size_v) > MAX_SIZE {
        let why =
            format!("heads of {} and {} elements; on a GPU they may have up to {MAX_SIZE}", z.size, z.size_v);
        return Err(Error::Argument { op: launch.op.name(), why });
    }
    let (q, k, v, y) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2], &launch.outputs[0]);
    let extra = op.extra(&launch.inputs);
    let is_plain = op.is_plain();
    let plan = Plan::new(gpu.props(), q.dtype, &z, is_plain);
    let params = VariantParams {
        params: parameters(launch, &op, &extra, &z, &plan),
        added: Added::new(&op, &extra, z.key_heads * z.group),
    };
    let in_tiles = [q, k, v].into_iter().all(vector) && y.addr.is_multiple_of(16);
    if plan.splits == 1 && in_tiles && suits_tiles(q.dtype, &z) {
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

fn prefill(
    gpu: &mut dyn Submit,
    q: &View,
    z: &Sizes,
    mut params: VariantParams,
    is_plain: bool,
) -> Result<()> {
    let (name, room, keys) = match z.size.max(z.size_v) {
        ..=64 => ("prefill_64", 64, if is_plain { 64 } else { 32 }),
        65..=128 => ("prefill_128", 128, 32),
        _ => ("prefill_256", 256, 32),
    };
    let (source, is_plain) = match (room, is_plain) {
        (256, _) => (&PREFILL_WIDE, false),
        (_, false) => (&PREFILL_VARIANT, false),
        (_, true) => (&PREFILL, true),
    };
    let chunks = z.times.div_ceil(QUERIES);
    let blocks = z.batches * z.key_heads * z.group * chunks;
    // Queries, and two tiles each of keys and values: at most 48 KiB, for which no block must ask, but for large heads.
    let shared = (QUERIES + 4 * keys) * room * q.dtype.size();
    let grid = Grid { blocks: [blocks as u32, 1, 1], threads: THREADS, shared: shared as u32 };
    params.params.chunks = chunks as u32;
    send(gpu, Kernel::of(source, q.dtype, name), grid, &params, is_plain)
}

fn decode(
    gpu: &mut dyn Submit,
    q: &View,
    z: &Sizes,
    plan: Plan,
    params: &VariantParams,
    is_plain: bool,
) -> Result<()> {
    let names = match plan.rows {
        1 => ["attend_1", "attend_1_by_2", "attend_1_by_4", "attend_1_by_8"],
        2 => ["attend_2", "attend_2_by_2", "attend_2_by_4", "attend_2_by_8"],
        4 => ["attend_4", "attend_4_by_2", "attend_4_by_4", "attend_4_by_8"],
        _ => ["attend_8", "attend_8_by_2", "attend_8_by_4", "attend_8_by_8"],
    };
    let name = names[plan.blocks_of_cluster().trailing_zeros() as usize];
    let (source, is_plain) = match (z.are_wide(), is_plain) {
        (true, _) => (&DECODE_WIDE, false),
        (false, false) => (&DECODE_VARIANT, false),
        (false, true) => (&DECODE, true),
    };
    let shared = plan.shared_bytes(z.size_v);
    let blocks = z.batches * z.key_heads * plan.chunks * plan.splits;
    let grid = Grid { blocks: [blocks as u32, 1, 1], threads: THREADS, shared: shared as u32 };
    send(gpu, Kernel::of(source, q.dtype, name), grid, params, is_plain)?;
    if plan.splits == 1 || plan.is_cluster {
        return Ok(());
    }
    let rows = z.batches * z.key_heads * z.rows();
    let join = Kernel::of(source, q.dtype, "attend_join");
    send(gpu, join, Grid::line(rows as u32, THREADS), params, is_plain)
}
