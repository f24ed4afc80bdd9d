//! Many queries, on tensor cores: which kernel takes them, and its launch.

use super::{Sizes, THREADS, VariantParams, send};
use crate::{
    DType, Result,
    backend::{
        View,
        cuda::{
            DeviceProperties,
            kernels::{Grid, Kernel, SourceFile, Submit},
        },
    },
};

/// The header that both sources include: what all of attention share, and behind it what these do.
const SHARED: &str = concat!(include_str!("../attention.cuh"), include_str!("../prefill.cuh"));
/// Tiles, in blocks that have one after the other.
const PREFILL_FILE: SourceFile = SourceFile::ours("attention/prefill.cu", include_str!("../prefill.cu"))
    .split()
    .with_header("prefill.cuh", SHARED);
/// Products of warpgroups, in blocks that stay.
const GROUPS_FILE: SourceFile =
    SourceFile::ours("attention/prefill_groups.cu", include_str!("../prefill_groups.cu"))
        .split()
        .with_header("prefill.cuh", SHARED);

pub(super) static PREFILL: SourceFile = PREFILL_FILE;
pub(super) static PREFILL_VARIANT: SourceFile = PREFILL_FILE.with_options(&["-DVARIANT=1"]);
/// Large heads, with or without a variant.
pub(super) static PREFILL_WIDE: SourceFile = PREFILL_FILE.with_options(&["-DVARIANT=1", "-DWIDE=1"]);
pub(super) static GROUPS: SourceFile = GROUPS_FILE;
pub(super) static GROUPS_VARIANT: SourceFile = GROUPS_FILE.with_options(&["-DVARIANT=1"]);

/// Threads of a block of `prefill_groups.cu`: two warpgroups that compute, and one that loads.
const THREADS_OF_GROUPS: u32 = 3 * 128;
/// The largest head of `prefill_groups.cu`.
const SIZE_OF_GROUPS: usize = 128;
/// Bytes of shared memory for the barriers of such a block.
const BARRIERS: usize = 1024;

/// A kernel, and what a block of it computes at a time.
struct Tile {
    kernel: &'static str,
    /// Queries of a block.
    queries: usize,
    /// Keys of a step.
    keys: usize,
    /// Elements of a head for which there is room.
    room: usize,
    /// Set if the kernel is of `prefill_groups.cu`.
    is_of_groups: bool,
}

impl Tile {
    fn new(props: &DeviceProperties, z: &Sizes, is_plain: bool) -> Self {
        // Other devices have no products of warpgroups. This one takes them for any number of queries, so that a row has the same
        // bits however many there are.
        if props.capability == (9, 0) && z.size.max(z.size_v) <= SIZE_OF_GROUPS {
            return Self::of_groups(z);
        }
        Self::of_warps(props, z, is_plain)
    }

    fn of_groups(z: &Sizes) -> Self {
        let (kernel, room) = match z.size.max(z.size_v) {
            ..=64 => ("prefill_groups_64", 64),
            _ => ("prefill_groups_128", 128),
        };
        Self { kernel, queries: 128, keys: 128, room, is_of_groups: true }
    }

    /// Blocks of twice as many queries read keys half as often, and are faster where there are enough of them: on an H200 of
    /// 132 multiprocessors, with heads of 128, 512 blocks took 0.81 of the time of twice as many smaller ones, 256 took 1.15.
    fn of_warps(props: &DeviceProperties, z: &Sizes, is_plain: bool) -> Self {
        const BLOCKS: usize = 3;
        let tall = z.batches * z.key_heads * z.group * z.times.div_ceil(128);
        let is_tall = tall >= BLOCKS * props.multiprocessors as usize;
        let (kernel, queries, keys, room) = match (z.size.max(z.size_v), is_plain) {
            (..=64, _) => ("prefill_64", 64, 64, 64),
            (65..=128, true) if is_tall => ("prefill_128_tall", 128, 64, 128),
            (65..=128, _) => ("prefill_128", 64, 64, 128),
            _ => ("prefill_256", 64, 32, 256),
        };
        Self { kernel, queries, keys, room, is_of_groups: false }
    }

    /// Returns the source, and whether its parameters are those of plain attention.
    fn source(&self, is_plain: bool) -> (&'static SourceFile, bool) {
        match (self.is_of_groups, self.room, is_plain) {
            (true, _, true) => (&GROUPS, true),
            (true, _, false) => (&GROUPS_VARIANT, false),
            (false, 256, _) => (&PREFILL_WIDE, false),
            (false, _, true) => (&PREFILL, true),
            (false, _, false) => (&PREFILL_VARIANT, false),
        }
    }

    /// Returns the memory of the queries, and of two tiles each of keys and values: at most 96 KiB. Blocks of `prefill_groups.cu`
    /// have as much again for the next queries, and memory for results or, of the same size, weights: at most 225 KiB, of 227 that
    /// such a GPU has.
    fn shared_bytes(&self, dtype: DType) -> usize {
        let tiles = (self.queries + 4 * self.keys) * self.room * dtype.size();
        if !self.is_of_groups {
            return tiles;
        }
        tiles + self.queries * (self.room + self.room.max(self.keys)) * dtype.size() + BARRIERS
    }

    /// Returns the grid for so many parts of the work: a block for each, or as many as there are multiprocessors, of which each takes
    /// parts until there are none.
    fn grid(&self, props: &DeviceProperties, parts: usize, dtype: DType) -> Grid {
        let (blocks, threads) = match self.is_of_groups {
            true => (parts.min(props.multiprocessors as usize), THREADS_OF_GROUPS),
            false => (parts, THREADS),
        };
        Grid { blocks: [blocks as u32, 1, 1], threads, shared: self.shared_bytes(dtype) as u32, cluster: 1 }
    }
}

pub(super) fn prefill(
    gpu: &mut dyn Submit,
    q: &View,
    z: &Sizes,
    mut params: VariantParams,
    is_plain: bool,
) -> Result<()> {
    let tile = Tile::new(gpu.props(), z, is_plain);
    let (source, is_plain) = tile.source(is_plain);
    let chunks = z.times.div_ceil(tile.queries);
    let parts = z.batches * z.key_heads * z.group * chunks;
    params.params.chunks = chunks as u32;
    if tile.is_of_groups {
        params.params.splits = parts as u32;
    }
    let grid = tile.grid(gpu.props(), parts, q.dtype);
    send(gpu, Kernel::of(source, q.dtype, tile.kernel), grid, &params, is_plain)
}
