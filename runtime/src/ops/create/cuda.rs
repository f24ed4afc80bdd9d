//! Tensors made from numbers on a GPU: `create.cu`.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

use crate::{
    DType, Result,
    backend::{
        View,
        cpu::round_to_odd,
        cuda::kernels::{Kernel, SourceFile, Submit, line, submit},
    },
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("create/create.cu", include_str!("create.cu"));

/// Mirrors `FillParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct FillParams {
    to: u64,
    bytes: u64,
    pattern: u32,
    pad: u32,
}
const _: () = assert!(size_of::<FillParams>() == 24);

/// Mirrors `ArangeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ArangeParams {
    to: u64,
    count: u64,
    start: f64,
    step: f64,
}
const _: () = assert!(size_of::<ArangeParams>() == 32);

/// The bits of `value`, repeated to four bytes.
fn pattern(dtype: DType, value: f64) -> u32 {
    let pair = |bits: u16| u32::from(bits) * 0x1_0001;
    let quad = |bits: u8| u32::from(bits) * 0x0101_0101;
    match dtype {
        DType::F32 => (value as f32).to_bits(),
        DType::F16 => pair(f16::from_f32(round_to_odd(value)).to_bits()),
        DType::Bf16 => pair(bf16::from_f32(round_to_odd(value)).to_bits()),
        DType::I32 => (value as i32).cast_unsigned(),
        DType::U32 => value as u32,
        DType::U8 => quad(value as u8),
        DType::Bool => quad((value != 0.0).into()),
    }
}

pub(super) fn fill(gpu: &mut dyn Submit, y: &View, value: f64) -> Result<()> {
    let pattern = pattern(y.dtype, value);
    let bytes = (y.layout.count() * y.dtype.size()) as u64;
    let params = FillParams { to: y.addr, bytes, pattern, pad: 0 };
    let grid = line(gpu, bytes.div_ceil(16));
    submit(gpu, Kernel::plain(&SOURCE, "fill"), grid, &params)
}

pub(super) fn arange(gpu: &mut dyn Submit, y: &View, start: f64, step: f64) -> Result<()> {
    let name = match y.dtype {
        DType::F32 => "arange_f32",
        DType::F16 => "arange_f16",
        DType::Bf16 => "arange_bf16",
        DType::I32 => "arange_i32",
        DType::U32 => "arange_u32",
        DType::U8 => "arange_u8",
        DType::Bool => "arange_boolean",
    };
    let params = ArangeParams { to: y.addr, count: y.layout.count() as u64, start, step };
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}
