//! One element from the elements at the same place of up to three inputs: `elementwise.cu`, `cast.cu`.

use bytemuck::{Pod, Zeroable};

use super::{
    Grid, Kernel, SourceFile, Submit, submit,
    walk::{Dims, THREADS, Walk},
};
use crate::{
    DType, Result,
    backend::{
        Launch, View,
        operations::{Binary, Compare, Unary},
    },
    base::rank::MAX_RANK,
};

/// Unary, binary, comparisons, where.
static ELEMENTWISE: SourceFile = SourceFile::ours("elementwise.cu", include_str!("elementwise.cu"));
/// Between dtypes.
static CAST: SourceFile = SourceFile::ours("cast.cu", include_str!("cast.cu"));

#[cfg(test)]
mod tests;

/// Mirrors `ElementParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ElementParams {
    x: [u64; 3],
    y: u64,
    count: u64,
    packs: u64,
    factor: f32,
    vec: u32,
    dims: Dims,
    strides: [[u64; MAX_RANK]; 3],
}
const _: () = assert!(size_of::<ElementParams>() == 256);

/// Mirrors `CastParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct CastParams {
    x: u64,
    y: u64,
    count: u64,
    packs: u64,
    vec: u32,
    pad: u32,
    dims: Dims,
    strides: [[u64; MAX_RANK]; 1],
}
const _: () = assert!(size_of::<CastParams>() == 144);

pub(crate) fn unary(gpu: &mut dyn Submit, launch: &Launch, kind: Unary) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let factor = if let Unary::Scale(factor) = kind { factor } else { 0.0 };
    let name = match kind {
        Unary::Neg => "unary_neg",
        Unary::Exp => "unary_exp",
        Unary::Log => "unary_log",
        Unary::Sqrt => "unary_sqrt",
        Unary::Rsqrt => "unary_rsqrt",
        Unary::Tanh => "unary_tanh",
        Unary::Relu => "unary_relu",
        Unary::Gelu => "unary_gelu",
        Unary::GeluTanh => "unary_gelu_tanh",
        Unary::Silu => "unary_silu",
        Unary::Scale(_) => "unary_scale",
    };
    elements(gpu, y.dtype, name, [&x[0]], y, factor)
}

pub(crate) fn binary(gpu: &mut dyn Submit, launch: &Launch, kind: Binary) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let name = match kind {
        Binary::Add => "binary_add",
        Binary::Sub => "binary_sub",
        Binary::Mul => "binary_mul",
        Binary::Div => "binary_div",
        Binary::SiluMul => "binary_silu_mul",
    };
    elements(gpu, y.dtype, name, [&x[0], &x[1]], y, 0.0)
}

pub(crate) fn compare(gpu: &mut dyn Submit, launch: &Launch, kind: Compare) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    let name = match kind {
        Compare::Eq => "compare_eq",
        Compare::Ne => "compare_ne",
        Compare::Lt => "compare_lt",
        Compare::Le => "compare_le",
        Compare::Gt => "compare_gt",
        Compare::Ge => "compare_ge",
    };
    elements(gpu, x[0].dtype, name, [&x[0], &x[1]], y, 0.0)
}

pub(crate) fn select(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (x, y) = (&launch.inputs[..], &launch.outputs[0]);
    elements(gpu, y.dtype, "where_pick", [&x[0], &x[1], &x[2]], y, 0.0)
}

/// Returns how an iteration is launched: by packs of `lanes` elements if all operands and the output allow
/// it.
fn steps<const N: usize>(x: [&View; N], y: &View, lanes: u64) -> (Walk<N>, bool) {
    let walk = Walk::of(x);
    let operands = x.map(|v| (v.addr, v.dtype.size() as u64));
    let aligned = y.addr.is_multiple_of(lanes * y.dtype.size() as u64);
    match walk.in_packs(lanes, operands).filter(|_| aligned) {
        Some(packs) => (packs, true),
        None => (walk, false),
    }
}

fn elements<const N: usize>(
    gpu: &mut dyn Submit,
    t: DType,
    name: &'static str,
    x: [&View; N],
    y: &View,
    factor: f32,
) -> Result<()> {
    let (walk, vec) = steps(x, y, 16 / t.size() as u64);
    let mut params = ElementParams {
        x: [0; 3],
        y: y.addr,
        count: y.layout.count() as u64,
        packs: walk.count(),
        factor,
        vec: vec.into(),
        dims: walk.dims(),
        strides: [[0; MAX_RANK]; 3],
    };
    params.strides[..N].copy_from_slice(&walk.strides());
    for (to, view) in params.x.iter_mut().zip(x) {
        *to = view.addr;
    }
    let grid = Grid::line(gpu.props().blocks_for(params.packs, THREADS), THREADS);
    submit(gpu, Kernel::of(&ELEMENTWISE, t, name), grid, &params)
}

pub(crate) fn cast(gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let (walk, vec) = steps([x], y, 16 / x.dtype.size().max(y.dtype.size()) as u64);
    let params = CastParams {
        x: x.addr,
        y: y.addr,
        count: y.layout.count() as u64,
        packs: walk.count(),
        vec: vec.into(),
        pad: 0,
        dims: walk.dims(),
        strides: walk.strides(),
    };
    let grid = Grid::line(gpu.props().blocks_for(params.packs, THREADS), THREADS);
    submit(gpu, Kernel::of2(&CAST, x.dtype, y.dtype, "cast"), grid, &params)
}
