//! The kernels of products of few rows, of which the sizes and the device choose.

use super::{
    few_rows::{self, MOST_OF_EIGHT},
    plan::{Plan, Source},
};
use crate::{BlockFormat, DType};

/// The kernel, for sources that include or contain it.
pub(in crate::ops::matmul) const TEXT: &str = include_str!("../thin.cuh");
/// What the kernel has besides for weights in blocks.
pub(super) const BLOCKS: &str =
    concat!(include_str!("../../quantized/blocks.cuh"), include_str!("../thin_blocks.cuh"));

/// Warps of a block: mirrors `SLICES` of `thin.cuh`.
const SLICES: usize = 8;
/// Columns, times the stacks of rows, from which on blocks have several passes over groups of 16: about those of one pass on 132
/// multiprocessors with two blocks each. It is the same for all devices, since the text of a kernel is.
const MANY_COLUMNS: usize = 4096;
/// Threads of a warp.
const WARP: usize = 32;

/// Elements of a unit of a format.
fn unit(format: BlockFormat) -> usize {
    format.elements().max(64)
}

/// Returns the warps that share K. The order of a sum follows from them, so they depend on format, element type and K alone. Where a ninth
/// warp spares the others the last of up to four units, there are nine for f32, which takes more instructions.
fn slices(format: BlockFormat, dtype: DType, k: usize) -> usize {
    let units = k.div_ceil(unit(format));
    let of_warp = |slices: usize| units.div_ceil(slices);
    match () {
        () if k > MOST_OF_EIGHT => 2 * SLICES,
        () if dtype == DType::F32 && of_warp(SLICES + 1) < of_warp(SLICES).min(4) => SLICES + 1,
        () => SLICES,
    }
}

/// Returns whether the blocks of a format are integers of four bits and a scale.
fn is_small(format: BlockFormat) -> bool {
    matches!(format, BlockFormat::Q4_0 | BlockFormat::IQ4_NL)
}

/// Returns whether a unit of a format takes eight bits an element.
fn is_wide_step(format: BlockFormat) -> bool {
    matches!(format, BlockFormat::Q8_0 | BlockFormat::F8_E4M3)
}

/// Columns of a group: mirrors `COLUMNS` of `thin.cuh`.
pub(in crate::ops::matmul) const COLUMNS: usize = 8;
/// A kernel: what it computes is the same for all, how fast it is depends on the number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops::matmul) struct Variant {
    /// Most rows of a block.
    pub(in crate::ops::matmul) rows: usize,
    /// Groups of columns of a block.
    pub(in crate::ops::matmul) groups: usize,
    /// Steps of which the weights are on their way at a time.
    pub(in crate::ops::matmul) ahead: usize,
    /// Blocks that a multiprocessor has room for.
    pub(in crate::ops::matmul) resident: usize,
    /// Its name in `matmul.cu`.
    pub(in crate::ops::matmul) name: &'static str,
}

macro_rules! variants {
    ($($rows:literal $groups:literal $ahead:literal $resident:literal;)*) => {
        [$(Variant {
            rows: $rows,
            groups: $groups,
            ahead: $ahead,
            resident: $resident,
            name: concat!("gemv_nk_", $rows, "_", $groups, "_", $ahead, "_", $resident),
        }),*]
    };
}

/// For f32, the first of each pair while all blocks can run at once: fewer weights of more columns, or more of few.
const FULL: [Variant; 6] = variants! {
    1 1 4 2; 1 1 4 3;
    2 1 4 2; 2 4 1 2;
    4 1 4 2; 4 2 2 2;
};
/// For 16 bits, which the tensor cores multiply, likewise.
const HALF: [Variant; 4] = variants! {
    8 1 4 2; 8 2 2 3;
    16 1 3 2; 16 4 1 2;
};

impl Variant {
    /// For `m` rows and `n` columns, of all products of a batch.
    pub(in crate::ops::matmul) fn of(multiprocessors: u32, dtype: DType, m: usize, n: usize) -> Self {
        let all: &[Self] = if dtype == DType::F32 { &FULL } else { &HALF };
        let pair = all.chunks(2).find(|pair| m <= pair[0].rows).or(all.chunks(2).last());
        // There is a pair.
        let pair = pair.unwrap_or(all);
        let blocks = n.div_ceil(pair[0].columns()) * m.div_ceil(pair[0].rows);
        let fit = pair[0].resident * multiprocessors as usize;
        pair[usize::from(blocks > fit)]
    }

    /// Columns of a block.
    pub(in crate::ops::matmul) fn columns(self) -> usize {
        self.groups * COLUMNS
    }

    /// Blocks for `m` rows and `n` columns.
    pub(in crate::ops::matmul) fn blocks(self, m: usize, n: usize) -> usize {
        m.div_ceil(self.rows) * n.div_ceil(self.columns())
    }
}

/// The kernel of a product with something around it: each block computes one group of columns after the other, so that the rows
/// are made once, and its next weights are on their way while it writes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    /// Most rows of a block.
    pub(super) rows: usize,
    /// Groups of columns at a time: a whole number for one or two products.
    pub(super) groups: usize,
    /// Warps of a block, which share K.
    pub(super) slices: usize,
    /// Steps of which the weights are on their way at a time.
    pub(super) ahead: usize,
    /// Passes over groups of columns whose weights are all on their way at a time; 0 if one pass has more.
    pub(super) passes: usize,
    /// Steps of which the rows are: they are in shared memory, or other blocks have read them.
    pub(super) near: usize,
    /// Blocks that a multiprocessor has room for.
    pub(super) resident: usize,
}

impl Fused {
    pub(super) fn of(plan: &Plan) -> Self {
        let (dtype, m, makes_rows) = (plan.dtype, plan.m, matches!(plan.source, Source::Norm(_)));
        if let Some(format) = plan.format {
            let columns = (0..plan.weights.len()).map(|i| plan.columns(i / plan.together)).sum();
            return Self::of_blocks(format, dtype, [m, columns, plan.k], makes_rows);
        }
        let [rows, ahead, near] = match (dtype, m) {
            // What results need is in registers, too.
            (DType::F32, ..=1) => [1, 4, 2],
            (_, ..=1) => [1, 4, 1],
            (DType::F32, 2) => [2, 2, 2],
            (DType::F32, _) => [4, 2, 1],
            // Several rows take registers while they are made.
            (_, 2..=8) if makes_rows => [8, 2, 1],
            (_, ..=8) => [8, 4, 1],
            _ if makes_rows => [16, 3, 1],
            _ => [16, 2, 1],
        };
        // Many rows are made in as many registers as there are.
        let resident = if [4, 16].contains(&rows) && makes_rows { 1 } else { 2 };
        Self { rows, groups: 2, slices: SLICES, ahead, passes: 0, near, resident }
    }

    /// For weights in blocks, of which a step is a unit.
    fn of_blocks(format: BlockFormat, dtype: DType, [m, columns, k]: [usize; 3], makes_rows: bool) -> Self {
        let (is_large, is_long) = (few_rows::is_large(format), k > MOST_OF_EIGHT);
        let (units, slices) = (k.div_ceil(unit(format)), slices(format, dtype, k));
        let rows = match (dtype, m) {
            (_, ..=1) => 1,
            (DType::F32, 2) => 2,
            (DType::F32, _) => 4,
            (_, ..=8) => 8,
            // Of twice as many threads, each has half as many registers.
            _ if is_large && is_long => 8,
            _ => 16,
        };
        let ahead = match rows {
            // Of a long row, what makes it takes the registers.
            1 if is_large && dtype != DType::F32 && !(is_long && makes_rows) => 2,
            _ if is_large => 1,
            2 | 4 | 16 => 2,
            _ if is_long && !is_wide_step(format) => 2,
            _ if is_long => 3,
            // Blocks are as many as run at a time with the registers that this takes. With fewer, a third one would find room on some
            // multiprocessors, while others had one.
            1 if dtype != DType::F32 && is_small(format) => 6,
            _ => 4,
        };
        // Several rows take registers while they are made.
        let is_wide =
            [4, 16].contains(&rows) && (is_large || makes_rows) || rows == 2 && makes_rows && slices > SLICES;
        let resident = if is_wide || is_long { 1 } else { 2 };
        let (of_pass, is_many) = (units.div_ceil(slices).max(1), columns * m.div_ceil(rows) >= MANY_COLUMNS);
        let (ahead, passes) = match ahead / of_pass {
            0 => (ahead, 0),
            _ if !is_many => (of_pass, 1),
            // It would take so few registers that a third block found room, see above.
            1 if !is_large => (ahead, 0),
            passes => (of_pass * passes, passes),
        };
        Self { rows, groups: 2, slices, ahead, passes, near: 1, resident }
    }

    /// Threads of a block.
    pub(super) fn threads(self) -> usize {
        self.slices * WARP
    }

    /// Blocks for so many groups of columns: as many as run at a time.
    pub(super) fn blocks(self, multiprocessors: u32, plan: &Plan, tiles: usize) -> usize {
        let (multiprocessors, stacks) = (multiprocessors as usize, plan.m.div_ceil(self.rows));
        let most = (multiprocessors * self.resident / stacks).max(1);
        // To take blocks apart costs the same for one group and for all, so every group has columns if that leaves no
        // multiprocessor idle.
        let side = if plan.format.is_some() { self.groups / plan.together } else { 1 };
        let tiles = if tiles > multiprocessors { tiles.div_ceil(side) } else { tiles };
        tiles.min(most) * stacks
    }
}
