//! Tensors made from numbers on a GPU: `create.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{
    DType, Result,
    backend::{
        View,
        cuda::kernels::{Kernel, SourceFile, Submit, line, submit},
    },
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("create/create.cu", include_str!("create.cu")).split();

/// Mirrors `FillParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct FillParams {
    to: u64,
    bytes: u64,
    pattern: u64,
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

/// The bits of an element of so many bytes, repeated to eight.
fn pattern(size: usize, bits: u64) -> u64 {
    match size {
        1 => bits * 0x0101_0101_0101_0101,
        2 => bits * 0x0001_0001_0001_0001,
        4 => bits << 32 | bits,
        _ => bits,
    }
}

pub(super) fn fill(gpu: &mut dyn Submit, y: &View, bits: u64) -> Result<()> {
    let pattern = pattern(y.dtype.size(), bits);
    let bytes = (y.layout.count() * y.dtype.size()) as u64;
    let params = FillParams { to: y.addr, bytes, pattern };
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
        DType::F64 => "arange_f64",
        DType::I64 => "arange_i64",
        DType::I8 => "arange_i8",
    };
    let params = ArangeParams { to: y.addr, count: y.layout.count() as u64, start, step };
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}
