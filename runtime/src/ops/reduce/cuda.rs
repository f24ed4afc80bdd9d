//! Reductions over one axis, and slices normalised along one, on a GPU: `reduce.cu`.

use bytemuck::{Pod, Zeroable};

use super::{operation::Reduce, rows};
use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::{
            DeviceProperties,
            kernels::{DeviceView, Grid, Kernel, SourceFile, Submit, submit},
        },
    },
    kernel::definition::Definition,
    value::layout::Layout,
};

static SOURCE: SourceFile = SourceFile::ours("reduce/reduce.cu", include_str!("reduce.cu")).split();

#[cfg(test)]
mod tests;

/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes of the largest accumulator.
const ACCUMULATOR: u64 = 16;
/// Most pieces of a slice.
const SPLITS: u64 = 128;
/// Blocks along x; the kernel loops over the rest.
const BLOCKS: u64 = 1 << 20;

/// Mirrors `Params` of `reduce.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    starts: DeviceView,
    mask: DeviceView,
    mask_stride: u64,
    real: u64,
    y: u64,
    partials: u64,
    count: u64,
    len: u64,
    stride: u64,
    inner: u64,
    chunk: u64,
    lanes: u32,
    splits: u32,
    along: u32,
    vector: u32,
    vector_out: u32,
    eps: f32,
    total: u32,
    pad: u32,
}
const _: () = assert!(size_of::<Params>() == 328);

/// The distribution of the slices of a view along an axis: a function of shapes, strides and addresses.
#[derive(Clone, Copy, Debug)]
struct Plan {
    count: u64,
    len: u64,
    stride: u64,
    lanes: u32,
    along: bool,
    vector: bool,
    splits: u64,
    chunk: u64,
}

impl Plan {
    /// For [`workspace_bytes`] and the launch alike. Alignment decides nothing but `vector`.
    fn new(props: &DeviceProperties, x: &View, axis: usize) -> Self {
        let (len, stride) = (x.layout.shape()[axis] as u64, x.layout.strides()[axis] as u64);
        let starts = without(x, axis);
        let count = x.layout.shape().iter().enumerate().filter(|&(a, _)| a != axis).map(|(_, &n)| n as u64);
        let count: u64 = count.product();
        let neighbour = (0..starts.rank as usize).next_back().map_or(u64::MAX, |last| starts.strides[last]);
        let along = stride <= neighbour || count < 8;

        let width = 16 / x.dtype.size() as u64;
        let whole = |v: u64| v.is_multiple_of(width);
        let rows = &starts.strides[..starts.rank as usize];
        let vector = stride == 1 && x.addr.is_multiple_of(16) && rows.iter().all(|&s| whole(s));

        // The number of elements that one thread processes together. It does not depend on alignment, so
        // neither does the workspace.
        let unit = if stride == 1 { width } else { 1 };
        let lanes = if along {
            len.div_ceil(unit).next_power_of_two().clamp(1, u64::from(THREADS))
        } else {
            let least = if count >= 64 { 4 } else { 8 };
            len.next_power_of_two().clamp(1, least)
        };
        let blocks = count.div_ceil(u64::from(THREADS) / lanes).max(1);
        // Enough blocks for the device, where a slice is long enough to be worth a second launch.
        let wanted = u64::from(props.multiprocessors) * 2 / blocks;
        let turns = len / (lanes * unit);
        let most = if turns < 16 { 1 } else { turns.min(SPLITS) };
        let splits = wanted.min(most).max(1);
        let chunk = len.div_ceil(splits).max(1).next_multiple_of(width);
        let splits = len.div_ceil(chunk).max(1);
        Self { count, len, stride, lanes: lanes as u32, along, vector, splits, chunk }
    }

    fn grid(&self, splits: u64) -> Grid {
        let slices = u64::from(THREADS / self.lanes);
        let blocks = self.count.div_ceil(slices).clamp(1, BLOCKS) as u32;
        Grid { blocks: [blocks, splits as u32, 1], threads: THREADS, shared: 0, cluster: 1 }
    }
}

/// The first elements of the slices along `axis`.
fn without(view: &View, axis: usize) -> DeviceView {
    let keep = |all: &[usize]| {
        all.iter()
            .enumerate()
            .filter(|&(a, _)| a != axis)
            .map(|(_, &n)| n)
            .collect::<smallvec::SmallVec<[_; 6]>>()
    };
    let layout = Layout::strided(&keep(view.layout.shape()), &keep(view.layout.strides()));
    // One dimension less than a layout that exists.
    layout.map_or_else(|_| DeviceView::from(view), |layout| DeviceView::from(&View { layout, ..*view }))
}

/// An operation along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    axis: usize,
    /// The kernel for a single pass, or those for pieces and for joining them.
    kernels: [&'static str; 3],
    /// If the output keeps the axis.
    keeps_axis: bool,
    eps: f32,
    total: bool,
    /// The kernel of rows that does the same for floats.
    of_rows: Option<&'static Definition>,
}

impl Along {
    fn new(axis: usize, kernels: [&'static str; 3]) -> Self {
        Self { axis, kernels, keeps_axis: false, eps: 0.0, total: false, of_rows: None }
    }

    /// The kernel of rows that computes this of `x`, and the input with the axis as its last dimension.
    fn by_rows(&self, x: &View) -> Option<(&'static Definition, View)> {
        let definition = self.of_rows?;
        Some((definition, rows::rows(x, self.axis, self.keeps_axis)?))
    }

    /// A reduction.
    pub(super) fn reduce(kind: Reduce, axis: usize) -> Self {
        let of_rows = rows::of_reduction(kind);
        let by_hand = Self::new(
            axis,
            match kind {
                Reduce::Sum => ["reduce_sum", "reduce_sum", "reduce_sum_join"],
                Reduce::Mean => ["reduce_mean", "reduce_mean", "reduce_mean_join"],
                Reduce::Max => ["reduce_max", "reduce_max", "reduce_max_join"],
            },
        );
        Self { of_rows, ..by_hand }
    }

    /// The mean of the elements selected by a mask, or their sum (`total`).
    pub(super) fn masked(axis: usize, total: bool) -> Self {
        Self { total, ..Self::new(axis, ["masked_mean", "masked_mean", "masked_mean_join"]) }
    }

    /// Softmax, or its logarithm.
    pub(super) fn softmax(axis: usize, log: bool) -> Self {
        let kernels = match log {
            false => ["softmax", "softmax_piece", "softmax_spread"],
            true => ["log_softmax", "log_softmax_piece", "log_softmax_spread"],
        };
        Self { keeps_axis: true, of_rows: Some(rows::of_softmax(log)), ..Self::new(axis, kernels) }
    }

    /// Division by the length.
    pub(super) fn l2_normalize(axis: usize, eps: f32) -> Self {
        let kernels = ["l2_normalize", "l2_normalize_piece", "l2_normalize_spread"];
        Self { keeps_axis: true, eps, ..Self::new(axis, kernels) }
    }
}

/// Kernels of rows need no workspace.
pub(super) fn workspace_bytes(props: &DeviceProperties, x: &View, along: Along) -> u64 {
    if along.by_rows(x).is_some() {
        return 0;
    }
    let plan = Plan::new(props, x, along.axis);
    if plan.splits > 1 { plan.count * plan.splits * ACCUMULATOR } else { 0 }
}

pub(super) fn launch(gpu: &mut dyn Submit, launch: &Launch, along: Along) -> Result<()> {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let mask = launch.inputs.get(1);
    if let Some((definition, x)) = along.by_rows(x) {
        return rows::launch(gpu, launch, definition, x);
    }
    let Along { axis, kernels: [whole, piece, finish], keeps_axis, eps, total, .. } = along;
    let plan = Plan::new(gpu.props(), x, axis);
    let inner: usize = x.layout.shape()[axis + 1..].iter().product();
    let width = 16 / x.dtype.size() as u64;
    let vector_out = plan.vector && inner == 1 && plan.len.is_multiple_of(width) && y.addr.is_multiple_of(16);
    let mut params = Params {
        starts: without(x, axis),
        mask: mask.map_or_else(DeviceView::zeroed, |m| without(m, axis)),
        mask_stride: mask.map_or(0, |m| m.layout.strides()[axis] as u64),
        real: launch.inputs.get(2).map_or(0, |count| count.addr),
        y: y.addr,
        partials: launch.workspace,
        count: plan.count,
        len: plan.len,
        stride: plan.stride,
        inner: inner as u64,
        chunk: plan.chunk,
        lanes: plan.lanes,
        splits: plan.splits as u32,
        along: plan.along.into(),
        vector: plan.vector.into(),
        vector_out: vector_out.into(),
        eps,
        total: total.into(),
        pad: 0,
    };
    let kernel = |name| Kernel::of(&SOURCE, x.dtype, name);
    if plan.splits == 1 {
        return submit(gpu, kernel(whole), plan.grid(1), &params);
    }
    submit(gpu, kernel(piece), plan.grid(plan.splits), &params)?;
    if keeps_axis {
        return submit(gpu, kernel(finish), plan.grid(plan.splits), &params);
    }
    // Pieces are joined by neighbours, whatever the slices were.
    let joining = Plan { lanes: plan.splits.next_power_of_two().min(32) as u32, ..plan };
    (params.lanes, params.along) = (joining.lanes, 1);
    submit(gpu, kernel(finish), joining.grid(1), &params)
}
