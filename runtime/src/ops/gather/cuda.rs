//! Rows and slices picked on a GPU: `gather.cu`.

use bytemuck::{Pod, Zeroable};

use super::operation::Counts;
use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::kernels::{Dims, FaultSink, Grid, Kernel, SourceFile, Submit, THREADS, Walk, for_word, submit},
    },
    base::rank::MAX_RANK,
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("gather/gather.cu", include_str!("gather.cu"));

/// Mirrors `PickParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PickParams {
    x: u64,
    y: u64,
    index: u64,
    sink: FaultSink,
    op: u32,
    wide: u32,
    count: u64,
    len: u64,
    n: u64,
    rows: u64,
    stride: u64,
    real: u64,
    ids: Dims,
    ids_strides: [[u64; MAX_RANK]; 1],
    outer: Dims,
    outer_strides: [[u64; MAX_RANK]; 1],
    inner: Dims,
    inner_strides: [[u64; MAX_RANK]; 1],
    padded: [Padded; MAX_RANK],
}
const _: () = assert!(size_of::<PickParams>() == 552);

/// Mirrors `Padded`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
struct Padded {
    real: u64,
    behind: u64,
    size: u64,
}

/// The locations of an operation's counts on the device.
struct RealSizes {
    /// Of the rows that can be picked; 0 if they are not padded.
    rows: u64,
    /// Of the dimensions of the index.
    index: [Padded; MAX_RANK],
}

fn counted(counts: Counts, views: &[View], index: &View) -> RealSizes {
    let (mut rows, mut padded) = (0, [Padded::default(); MAX_RANK]);
    let sizes = index.layout.shape();
    for (place, view) in counts.places().zip(views) {
        match sizes.get(place) {
            Some(&size) => {
                let behind = sizes[place + 1..].iter().product::<usize>() as u64;
                padded[place] = Padded { real: view.addr, behind, size: size as u64 };
            }
            None => rows = view.addr,
        }
    }
    RealSizes { rows, index: padded }
}

pub(super) fn embedding(gpu: &mut dyn Submit, launch: &Launch, counts: Counts) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let op = gpu.fault_op(launch.op.name());
    pick(gpu, op, &x[0], &x[1], 0, counted(counts, &x[2..], &x[0]), y)
}

pub(super) fn gather(gpu: &mut dyn Submit, launch: &Launch, axis: usize, counts: Counts) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let op = gpu.fault_op(launch.op.name());
    pick(gpu, op, &x[1], &x[0], axis, counted(counts, &x[2..], &x[1]), y)
}

fn pick(
    gpu: &mut dyn Submit,
    op: u32,
    index: &View,
    x: &View,
    axis: usize,
    real: RealSizes,
    y: &View,
) -> Result<()> {
    const NAMES: [&str; 5] = ["pick_1", "pick_2", "pick_4", "pick_8", "pick_16"];
    let (shape, strides, size) = (x.layout.shape(), x.layout.strides(), x.dtype.size() as u64);
    let mut outer = Walk::new(&shape[..axis], [&strides[..axis]]);
    let inner = Walk::new(&shape[axis + 1..], [&strides[axis + 1..]]);
    let stride = strides[axis] as u64 * size;
    let others = outer.0.iter().fold(x.addr | y.addr | stride, |all, dim| all | (dim.strides[0] * size));
    let word = inner.word(size, &[others]);
    let inner = inner.in_words(size, word);
    // Not the outer sizes: those count slices.
    for dim in &mut outer.0 {
        dim.strides[0] = dim.strides[0] * size / word;
    }
    let ids = Walk::of([index]);
    let (len, n) = (inner.count(), ids.count());
    let count = outer.count() * n * len;
    let params = PickParams {
        x: x.addr,
        y: y.addr,
        index: index.addr,
        sink: gpu.faults(),
        op,
        wide: (count >= 1 << 31).into(),
        count,
        len,
        n,
        rows: shape[axis] as u64,
        stride: stride / word,
        real: real.rows,
        ids: ids.dims(),
        ids_strides: ids.strides(),
        outer: outer.dims(),
        outer_strides: outer.strides(),
        inner: inner.dims(),
        inner_strides: inner.strides(),
        padded: real.index,
    };
    let grid = Grid::line(gpu.props().blocks_for(count, THREADS), THREADS);
    submit(gpu, Kernel::plain(&SOURCE, for_word(NAMES, word)), grid, &params)
}
