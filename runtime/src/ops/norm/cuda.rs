//! Rows normalised on a GPU: `norm.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{
    Result,
    backend::{
        Launch, View,
        cuda::kernels::{DeviceView, Grid, Kernel, SourceFile, Submit, submit},
    },
};

static SOURCE: SourceFile = SourceFile::ours("norm/norm.cu", include_str!("norm.cu"));

/// Threads of a block.
const THREADS: u64 = 256;
/// Vectors of a row that a thread keeps.
const HELD: u64 = 4;

/// Mirrors `Params` of `norm.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    rows: DeviceView,
    weight: u64,
    bias: u64,
    y: u64,
    count: u64,
    len: u64,
    stride: u64,
    weight_stride: u64,
    bias_stride: u64,
    lanes: u32,
    vector: u32,
    eps: f32,
    pad: u32,
}
const _: () = assert!(size_of::<Params>() == 192);

/// Mirrors `Added` of `norm.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Added {
    rows: DeviceView,
    stride: u64,
    sum: u64,
}

/// Mirrors `AddParams` of `norm.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct AddParams {
    norm: Params,
    added: Added,
}
const _: () = assert!(size_of::<AddParams>() == 320);

pub(super) fn layer_norm(gpu: &mut dyn Submit, launch: &Launch, eps: f32) -> Result<()> {
    let (inputs, y) = (&launch.inputs, &launch.outputs[0]);
    let by = Norm { name: "layer_norm", eps, added: None, weight: &inputs[1], bias: inputs.get(2) };
    normalize(gpu, &inputs[0], y, by)
}

pub(super) fn rms_norm(gpu: &mut dyn Submit, launch: &Launch, eps: f32) -> Result<()> {
    let (inputs, y) = (&launch.inputs, &launch.outputs[0]);
    let by = Norm { name: "rms_norm", eps, added: None, weight: &inputs[1], bias: None };
    normalize(gpu, &inputs[0], y, by)
}

pub(super) fn add_rms_norm(gpu: &mut dyn Submit, launch: &Launch, eps: f32) -> Result<()> {
    let (inputs, outputs) = (&launch.inputs, &launch.outputs);
    let added = Some((&inputs[1], &outputs[0]));
    let by = Norm { name: "add_rms_norm", eps, added, weight: &inputs[2], bias: None };
    normalize(gpu, &inputs[0], &outputs[1], by)
}

/// The quantity by which rows are normalised.
struct Norm<'v> {
    name: &'static str,
    eps: f32,
    /// The operand that is added first, and the destination of the sum.
    added: Option<(&'v View, &'v View)>,
    weight: &'v View,
    bias: Option<&'v View>,
}

fn normalize(gpu: &mut dyn Submit, x: &View, y: &View, by: Norm<'_>) -> Result<()> {
    let Norm { name, eps, added, weight, bias } = by;
    let axis = x.layout.rank() - 1;
    let last = |view: &View| view.layout.strides().last().map_or(0, |&s| s as u64);
    let len = x.layout.shape()[axis] as u64;
    let count = x.layout.shape()[..axis].iter().map(|&n| n as u64).product();

    // A row is one element of this view.
    let rows = |view: &View| DeviceView::from(&View { layout: view.layout.with_dim(axis, 1), ..*view });
    let width = 16 / x.dtype.size() as u64;
    let whole = |v: u64| v.is_multiple_of(width);
    let (summand, sum) = (added.map(|a| a.0), added.map(|a| a.1));
    let read = || [Some(x), summand, Some(weight), bias].into_iter().flatten();
    let fits = |view: &View| {
        let rows = rows(view);
        rows.strides[..rows.rank as usize].iter().all(|&s| whole(s))
    };
    let vector = read().chain(sum).chain([y]).all(|v| v.addr.is_multiple_of(16))
        && whole(len)
        && len <= HELD * THREADS * width
        && read().all(|v| last(v) == 1)
        && fits(x)
        && summand.is_none_or(fits);

    let lanes = len.div_ceil(if vector { width } else { 1 }).next_power_of_two().clamp(1, THREADS);
    let params = Params {
        rows: rows(x),
        weight: weight.addr,
        bias: bias.map_or(0, |b| b.addr),
        y: y.addr,
        count,
        len,
        stride: last(x),
        weight_stride: last(weight),
        bias_stride: bias.map_or(0, last),
        lanes: lanes as u32,
        vector: vector.into(),
        eps,
        pad: 0,
    };
    let blocks = count.div_ceil(THREADS / lanes).clamp(1, 1 << 20) as u32;
    let (kernel, grid) = (Kernel::of(&SOURCE, x.dtype, name), Grid::line(blocks, THREADS as u32));
    match added {
        None => submit(gpu, kernel, grid, &params),
        Some((added, sum)) => {
            let added = Added { rows: rows(added), stride: last(added), sum: sum.addr };
            submit(gpu, kernel, grid, &AddParams { norm: params, added })
        }
    }
}
