//! Rows and slices picked on a GPU: `gather.cu`.

use bytemuck::{Pod, Zeroable};

use super::operation::{Counts, Indices};
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

static SOURCE: SourceFile = SourceFile::ours("gather/gather.cu", include_str!("gather.cu")).split();

/// Mirrors `PickParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PickParams {
    x: u64,
    y: u64,
    count: u64,
    len: u64,
    n: u64,
    stride: u64,
    wide: u64,
    picks: Picks,
    outer: Dims,
    outer_strides: [[u64; MAX_RANK]; 1],
    inner: Dims,
    inner_strides: [[u64; MAX_RANK]; 1],
}
const _: () = assert!(size_of::<PickParams>() == 560);

/// Mirrors `Padded`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
struct Padded {
    real: u64,
    behind: u64,
    size: u64,
}

/// Mirrors `Picks`: indices, and the slices that they pick.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in crate::ops) struct Picks {
    index: u64,
    sink: FaultSink,
    op: u32,
    pad: u32,
    rows: u64,
    /// The address of the number of those that are real; 0 if they are not padded.
    real: u64,
    ids: Dims,
    strides: [[u64; MAX_RANK]; 1],
    padded: [Padded; MAX_RANK],
}
const _: () = assert!(size_of::<Picks>() == 296);

impl Picks {
    /// Indices that pick from `rows` slices for the operation `name`.
    pub(in crate::ops) fn new(
        gpu: &mut dyn Submit,
        name: &'static str,
        indices: Indices<'_>,
        rows: usize,
    ) -> Self {
        let (mut real, mut padded) = (0, [Padded::default(); MAX_RANK]);
        let index = indices.view;
        let sizes = index.layout.shape();
        for (place, view) in indices.counted() {
            match sizes.get(place) {
                Some(&size) => {
                    let behind = sizes[place + 1..].iter().product::<usize>() as u64;
                    padded[place] = Padded { real: view.addr, behind, size: size as u64 };
                }
                None => real = view.addr,
            }
        }
        let ids = Walk::of([index]);
        Self {
            index: index.addr,
            sink: gpu.faults(),
            op: gpu.fault_op(name),
            pad: 0,
            rows: rows as u64,
            real,
            ids: ids.dims(),
            strides: ids.strides(),
            padded,
        }
    }
}

pub(super) fn embedding(gpu: &mut dyn Submit, launch: &Launch, counts: Counts) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let indices = Indices::new(launch, 0, counts);
    let picks = Picks::new(gpu, launch.op.name(), indices, x[1].layout.shape()[0]);
    pick(gpu, picks, &x[0], &x[1], 0, y)
}

pub(super) fn gather(gpu: &mut dyn Submit, launch: &Launch, axis: usize, counts: Counts) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let indices = Indices::new(launch, 1, counts);
    let picks = Picks::new(gpu, launch.op.name(), indices, x[0].layout.shape()[axis]);
    pick(gpu, picks, &x[1], &x[0], axis, y)
}

fn pick(gpu: &mut dyn Submit, picks: Picks, index: &View, x: &View, axis: usize, y: &View) -> Result<()> {
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
    let (len, n) = (inner.count(), index.layout.count() as u64);
    let count = outer.count() * n * len;
    let params = PickParams {
        x: x.addr,
        y: y.addr,
        count,
        len,
        n,
        stride: stride / word,
        wide: (count >= 1 << 31).into(),
        picks,
        outer: outer.dims(),
        outer_strides: outer.strides(),
        inner: inner.dims(),
        inner_strides: inner.strides(),
    };
    let grid = Grid::line(gpu.props().blocks_for(count, THREADS), THREADS);
    submit(gpu, Kernel::plain(&SOURCE, for_word(NAMES, word)), grid, &params)
}
