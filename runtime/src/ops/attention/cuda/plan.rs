//! Few queries: which kernel takes them, and how it divides rows and keys.

use super::{super::operation::nearest_power, Sizes, suits_tiles};
use crate::{DType, backend::cuda::DeviceProperties};

/// Queries up to which the kernels for few of them take a call.
pub(super) const DECODE_TIMES: usize = 8;
/// Elements of a head that a lane of the kernel for any heads holds.
pub(super) const EACH: usize = 8;
/// Of a large head.
pub(super) const EACH_WIDE: usize = 32;
/// The number of keys that justify a separate block of it.
const KEYS: usize = 64;
/// Most blocks of a cluster, unless there are more keys than `LONG`.
const CLUSTER: usize = 8;
/// See `CLUSTER`.
const LONG: usize = 4096;
/// Most parts of the keys without a cluster.
const SPLITS: usize = 64;
/// Most bytes of shared memory of a block in a cluster: every device that has clusters has them.
pub(super) const MOST_SHARED: usize = 96 << 10;
/// Heads of the kernels for common sizes.
const SIZES: std::ops::RangeInclusive<usize> = 16..=128;

/// The kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `decode.cu`
    Any,
    /// `decode_tiles.cu`
    Tiles,
    /// `decode_floats.cu`
    Floats,
}

/// The split of rows and keys: a function of shapes, types and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Rows that a block takes.
    pub(super) rows: usize,
    /// Blocks that share the rows of a key head.
    pub(super) chunks: usize,
    /// Parts of the keys.
    pub(super) splits: usize,
    /// Set if the blocks of a row's parts are a cluster, which adds them; otherwise another kernel does.
    pub(super) is_cluster: bool,
    /// Lanes that share a key.
    pub(super) lanes: usize,
    /// Elements of a head for which there is room.
    width: usize,
    /// Threads of a block.
    pub(super) threads: u32,
}

impl Plan {
    /// `is_plain` says that only the mask changes scores, `is_vector` that heads can be read 16 bytes at a time.
    pub(super) fn new(
        props: &DeviceProperties,
        dtype: DType,
        z: &Sizes,
        is_plain: bool,
        is_vector: bool,
    ) -> Self {
        let is_common = [z.size, z.size_v].iter().all(|size| SIZES.contains(size)) && z.times <= DECODE_TIMES;
        match dtype {
            _ if !(is_vector && is_common) => Self::any(props, dtype, z, is_plain),
            DType::F32 => Self::common(props, z, Kind::Floats, is_plain),
            _ if props.capability >= (8, 0) => Self::common(props, z, Kind::Tiles, is_plain),
            _ => Self::any(props, dtype, z, is_plain),
        }
    }

    /// For heads that are read 16 bytes at a time. Each row of a key head is in one block as far as it has room, so that keys
    /// are read once; there are as many blocks as run at the same time.
    fn common(props: &DeviceProperties, z: &Sizes, kind: Kind, is_plain: bool) -> Self {
        let width = if z.size.max(z.size_v) <= 64 { 64 } else { 128 };
        let rows = match kind {
            Kind::Floats => z.rows().next_power_of_two().clamp(1, 4),
            // Registers do not hold what more scores need besides.
            _ if z.rows() <= 8 || width == 128 && !is_plain => 8,
            _ => 16,
        };
        // As in the sources: threads of a block, and blocks of a multiprocessor.
        let (threads, blocks) = match (kind, width, rows) {
            (Kind::Floats, _, 2 | 4) if !is_plain => (256, 1),
            (Kind::Floats, ..) | (_, 64, 8) => (256, 2),
            (_, 64, _) => (256, 1),
            (_, _, 8) => (192, 2),
            _ => (192, 1),
        };
        let chunks = z.rows().div_ceil(rows);
        // Clusters are within parts of the device whose size need not be a multiple of theirs, so some room is lost: an eighth is
        // more than on an H100. One that has to wait for others would take twice the time.
        let room = blocks * props.multiprocessors as usize * 7 / 8;
        let wanted = room / (z.batches * z.key_heads * chunks).max(1);
        let keys = threads / 32 * Self::keys_of_tile(kind, width);
        let wanted = wanted.min(z.keys.div_ceil(keys));
        let is_cluster = props.largest_cluster() > 1;
        // Larger clusters take longer to begin and to add their parts, so they are for more keys.
        let most = if z.keys > LONG { props.largest_cluster() } else { props.largest_cluster().min(CLUSTER) };
        let splits = if is_cluster { nearest_power(wanted.clamp(1, most)) } else { wanted.clamp(1, SPLITS) };
        let mut plan =
            Self { kind, rows, chunks, splits, is_cluster, lanes: 0, width, threads: threads as u32 };
        plan.fit(z);
        plan
    }

    /// The keys that a warp of the kernels for common sizes has at a time.
    fn keys_of_tile(kind: Kind, width: usize) -> usize {
        if kind == Kind::Floats { 1024 / width } else { 16 }
    }

    /// Takes fewer blocks for a cluster if they need too much shared memory.
    fn fit(&mut self, z: &Sizes) {
        while self.blocks_of_cluster() > 1 && self.shared_bytes(z) > MOST_SHARED {
            self.splits /= 2;
        }
    }

    fn any(props: &DeviceProperties, dtype: DType, z: &Sizes, is_plain: bool) -> Self {
        // As many rows as registers hold.
        let (most, each) = match (z.are_wide(), is_plain) {
            (true, _) => (1, EACH_WIDE),
            (false, true) => (8, EACH),
            (false, false) => (4, EACH),
        };
        let mut rows = z.rows().next_power_of_two().clamp(1, most);
        let is_cluster = props.largest_cluster() > 1;
        let cluster = props.largest_cluster().min(CLUSTER);
        // Few sequences: a block with fewer rows ends sooner, and there is room for more blocks, which read the keys again.
        let pairs = z.batches * z.key_heads;
        while is_cluster
            && rows > 1
            && pairs * z.rows().div_ceil(rows) * cluster < 2 * props.multiprocessors as usize
        {
            rows /= 2;
        }
        let chunks = z.rows().div_ceil(rows);
        let blocks = (z.batches * z.key_heads * chunks).max(1);
        // Blocks that run on a multiprocessor at the same time: those of few rows have fewer registers.
        let at_once = if rows <= 2 { 5 } else { 3 };
        let wanted = (props.multiprocessors as usize * at_once / blocks).min(z.keys.div_ceil(KEYS));
        let splits =
            if is_cluster { nearest_power(wanted.clamp(1, cluster)) } else { wanted.clamp(1, SPLITS) };
        let lanes = z.size.max(z.size_v).div_ceil(each).next_power_of_two();
        // Tiles are not split, so operands that they do not support because of strides are not split either.
        let splits = if suits_tiles(dtype, z) { 1 } else { splits };
        let width = lanes * each;
        let mut plan = Self { kind: Kind::Any, rows, chunks, splits, is_cluster, lanes, width, threads: 128 };
        plan.fit(z);
        plan
    }

    /// Blocks that share the keys as a cluster; 1 without one.
    pub(super) fn blocks_of_cluster(&self) -> usize {
        if self.is_cluster { self.splits } else { 1 }
    }

    /// The name of the kernel.
    pub(super) fn kernel(&self) -> &'static str {
        match (self.kind, self.width, self.rows) {
            (Kind::Any, _, 1) => "attend_1",
            (Kind::Any, _, 2) => "attend_2",
            (Kind::Any, _, 4) => "attend_4",
            (Kind::Any, ..) => "attend_8",
            (Kind::Tiles, 64, 8) => "attend_64_8",
            (Kind::Tiles, 64, _) => "attend_64_16",
            (Kind::Tiles, _, 8) => "attend_128_8",
            (Kind::Tiles, ..) => "attend_128_16",
            (Kind::Floats, 64, 1) => "attend_64_1",
            (Kind::Floats, 64, 2) => "attend_64_2",
            (Kind::Floats, 64, _) => "attend_64_4",
            (Kind::Floats, _, 1) => "attend_128_1",
            (Kind::Floats, _, 2) => "attend_128_2",
            (Kind::Floats, ..) => "attend_128_4",
        }
    }

    /// Shared memory of a block: what its warps have, and what the blocks of its cluster have; the queries and weights of the
    /// kernels that keep them there.
    pub(super) fn shared_bytes(&self, z: &Sizes) -> usize {
        let (rows, width, warps) = (self.rows.min(z.rows()), self.width, self.threads as usize / 32);
        let own = match self.kind {
            Kind::Any => self.rows * width,
            Kind::Tiles => 0,
            // Queries, and the weights of a tile of each warp.
            Kind::Floats => self.rows * (width + warps * Self::keys_of_tile(self.kind, width)),
        };
        let parts = rows * (warps + self.blocks_of_cluster()) * (width + 2);
        (own + parts) * size_of::<f32>()
    }
}
