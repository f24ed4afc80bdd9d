//! Layer norm and RMS norm.

use bytemuck::{Pod, Zeroable};

use super::{DeviceView, Family, Grid, Kernel, Submit, submit};
use crate::{
    Result,
    backend::{Launch, Op},
};

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

pub(super) fn launch(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (name, eps) = match launch.op {
        Op::LayerNorm { eps } => ("layer_norm", eps),
        Op::RmsNorm { eps } => ("rms_norm", eps),
        _ => return Ok(()),
    };
    let (x, weight, y) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let bias = launch.inputs.get(2);
    let axis = x.layout.rank() - 1;
    let last = |view: &crate::backend::View| view.layout.strides().last().map_or(0, |&s| s as u64);
    let (len, stride) = (x.layout.shape()[axis] as u64, last(x));
    let count = x.layout.shape()[..axis].iter().map(|&n| n as u64).product();

    // A row is one element of this view.
    let rows = DeviceView::from(&crate::backend::View { layout: x.layout.with_dim(axis, 1), ..*x });
    let width = 16 / x.dtype.size() as u64;
    let whole = |v: u64| v.is_multiple_of(width);
    let aligned =
        [Some(x), Some(weight), bias, Some(y)].into_iter().flatten().all(|v| v.addr.is_multiple_of(16));
    let vector = aligned
        && whole(len)
        && len <= HELD * THREADS * width
        && [Some(x), Some(weight), bias].into_iter().flatten().all(|v| last(v) == 1)
        && rows.strides[..rows.rank as usize].iter().all(|&s| whole(s));

    let lanes = len.div_ceil(if vector { width } else { 1 }).next_power_of_two().clamp(1, THREADS);
    let params = Params {
        rows,
        weight: weight.addr,
        bias: bias.map_or(0, |b| b.addr),
        y: y.addr,
        count,
        len,
        stride,
        weight_stride: last(weight),
        bias_stride: bias.map_or(0, last),
        lanes: lanes as u32,
        vector: vector.into(),
        eps,
        pad: 0,
    };
    let blocks = count.div_ceil(THREADS / lanes).clamp(1, 1 << 20) as u32;
    submit(gpu, Kernel::of(Family::Norm, x.dtype, name), Grid::line(blocks, THREADS as u32), &params)
}
