//! An operation by a `.cu` file: overlapping windows of a signal.

use std::{f32::consts::TAU, sync::LazyLock};

use graphable::{
    custom::{CpuCall, CpuFailure, CudaGrid, CudaKernel, CudaSource, CustomOp},
    prelude::*,
};

const SOURCE: &str = include_str!("windows.cu");

/// Cuts each row of `signal`, `[B, samples]`, into windows of `length` samples, one every `hop` samples, and fades them in
/// and out: `[B, windows, length]`.
pub fn windows<'s>(signal: &Tensor<'s, f32>, length: usize, hop: usize) -> Result<Tensor<'s, f32>> {
    static WINDOWS: LazyLock<CustomOp> = LazyLock::new(|| {
        // SAFETY: the launch below passes the seven parameters of the kernel. It writes the `rows * windows * length`
        // elements of its output, and reads up to `(windows - 1) * hop + length <= samples` of each row.
        let kernel = unsafe {
            CudaKernel::new(CudaSource::Cuda(SOURCE.into()), "windows", |shapes| {
                CudaGrid::for_elements(shapes.output(0).iter().product(), 256)
            })
        };
        CustomOp::builder("windows").keeps_padding().cpu(on_the_cpu).cuda(kernel).build()
    });
    let fits = |samples: usize| length > 0 && hop > 0 && samples >= length;
    let samples = if signal.rank() == 2 { signal.dim(1).get()? } else { 0 };
    let count = if fits(samples) { (samples - length) / hop + 1 } else { 0 };
    WINDOWS
        .call(signal.scope())
        .input(signal)
        .require(fits(samples), "the signal must be `[B, samples]`, at least one window long")
        .size(signal.dim(0))
        .size(samples)
        .size(count)
        .size(length)
        .size(hop)
        .output((signal.dim(0), count, length))
        .run()
}

fn on_the_cpu(call: &CpuCall<'_>) -> Result<(), CpuFailure> {
    let size = |index| call.scalar::<u64>(index).map(|size| size as usize);
    let (samples, windows, length, hop) = (size(1)?, size(2)?, size(3)?, size(4)?);
    let (signal, out) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
    for (row, out) in signal.chunks_exact(samples).zip(out.chunks_exact_mut(windows * length)) {
        for (window, out) in out.chunks_exact_mut(length).enumerate() {
            for (at, (out, x)) in out.iter_mut().zip(&row[window * hop..]).enumerate() {
                *out = (0.5 - 0.5 * (TAU * at as f32 / length as f32).cos()) * x;
            }
        }
    }
    Ok(())
}
