//! Products of groups of rows on a GPU: `grouped.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::kernels::{Grid, Kernel, SourceFile, Submit, submit},
    },
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("moe/grouped/grouped.cu", include_str!("grouped.cu")).split();

/// Threads of a block.
const THREADS: u32 = 256;
/// Columns of a tile.
const TILE: u64 = 64;

/// Mirrors `Params` of `grouped.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    x: u64,
    w: u64,
    ends: u64,
    y: u64,
    rows: u64,
    k: u64,
    n: u64,
    groups: u64,
    slots: u64,
    x_row: u64,
    x_col: u64,
    w_group: u64,
    w_row: u64,
    w_col: u64,
    ends_stride: u64,
}
const _: () = assert!(size_of::<Params>() == 120);

pub(super) fn grouped_mm(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (x, w, ends, y) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2], &launch.outputs[0]);
    let size = |of: &View, axis: usize| of.layout.shape()[axis] as u64;
    let stride = |of: &View, axis: usize| of.layout.strides()[axis] as u64;
    let (rows, groups) = (size(x, 0), size(w, 0));
    // Where groups have a few rows on average, most of a high tile would be empty.
    let (name, down) = if rows < 32 * groups { ("grouped_16", 16) } else { ("grouped_64", 64) };
    // Each group, and the rows behind them, can end in a tile that is not full.
    let slots = rows / down + (groups + 1).min(rows);
    let params = Params {
        x: x.addr,
        w: w.addr,
        ends: ends.addr,
        y: y.addr,
        rows,
        k: size(x, 1),
        n: size(y, 1),
        groups,
        slots,
        x_row: stride(x, 0),
        x_col: stride(x, 1),
        w_group: stride(w, 0),
        w_row: stride(w, 1),
        w_col: stride(w, 2),
        ends_stride: stride(ends, 0),
    };
    let blocks = slots.saturating_mul(params.n.div_ceil(TILE)).min(i32::MAX as u64) as u32;
    submit(gpu, Kernel::of(&SOURCE, y.dtype, name), Grid::line(blocks, THREADS), &params)
}
