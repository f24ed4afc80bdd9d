//! Rows placed on a GPU: `scatter.cu`.

use bytemuck::{Pod, Zeroable};

use self::places::Places;
use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::kernels::{Dims, Grid, Kernel, SourceFile, Submit, THREADS, Walk, for_word, submit},
    },
    base::rank::MAX_RANK,
};

pub(in crate::ops) mod places;
#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("scatter/scatter.cu", include_str!("scatter.cu")).split();

/// Mirrors `ScatterParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ScatterParams {
    x: u64,
    y: u64,
    to: Places,
    len: u64,
    strides: [u64; 2],
    inner: Dims,
    inner_strides: [[u64; MAX_RANK]; 2],
}
const _: () = assert!(size_of::<ScatterParams>() == 272);

/// Mirrors `ElementParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ElementParams {
    x: u64,
    y: u64,
    to: Places,
}
const _: () = assert!(size_of::<ElementParams>() == 96);

/// Elements at places that count from 1.
pub(super) fn write_elements(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    const NAMES: [&str; 5] = ["elements_1", "elements_2", "elements_4", "elements_8", ""];
    let (x, y) = (&launch.inputs[1], &launch.outputs[0]);
    let to = Places::find_from_one(gpu, launch, &launch.inputs[0])?;
    let grid = Grid::line(gpu.props().blocks_for(to.n(), THREADS), THREADS);
    let kernel = Kernel::plain(&SOURCE, for_word(NAMES, y.dtype.size() as u64));
    submit(gpu, kernel, grid, &ElementParams { x: x.addr, y: y.addr, to })
}

pub(super) fn scatter_rows(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let to = Places::find(gpu, launch, &x[0], x.get(2))?;
    scatter(gpu, to, &x[1], y)
}

fn scatter(gpu: &mut dyn Submit, to: Places, x: &View, y: &View) -> Result<()> {
    const NAMES: [&str; 5] = ["scatter_1", "scatter_2", "scatter_4", "scatter_8", "scatter_16"];
    let n = to.n();
    if n == 0 {
        return Ok(());
    }
    let size = y.dtype.size() as u64;
    let inner = Walk::new(&y.layout.shape()[1..], [&x.layout.strides()[1..], &y.layout.strides()[1..]]);
    let strides = [x, y].map(|v| v.layout.strides()[0] as u64 * size);
    // The only row has a stride that nothing needs.
    let strides = [if n == 1 { 0 } else { strides[0] }, strides[1]];
    let word = inner.word(size, &[x.addr, y.addr, strides[0], strides[1]]);
    let inner = inner.in_words(size, word);
    let params = ScatterParams {
        x: x.addr,
        y: y.addr,
        to,
        len: inner.count(),
        strides: strides.map(|s| s / word),
        inner: inner.dims(),
        inner_strides: inner.strides(),
    };
    // Few rows share the device: several blocks for each.
    let most = gpu.props().blocks_for(u64::MAX, THREADS);
    let rows = n.min(u64::from(most)) as u32;
    let split = params.len.div_ceil(u64::from(THREADS) * 4).clamp(1, u64::from((most / rows).max(1)));
    let grid = Grid { blocks: [rows, split as u32, 1], threads: THREADS, shared: 0, cluster: 1 };
    submit(gpu, Kernel::plain(&SOURCE, for_word(NAMES, word)), grid, &params)
}
