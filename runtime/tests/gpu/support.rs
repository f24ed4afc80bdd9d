//! A GPU, or word of its absence.

use std::{io::Write as _, sync::Arc, thread};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys::CUresult};
use graphable::{
    Device, Runtime,
    backend::cuda::{self, CudaOptions},
};

/// Says that a test is skipped where the harness does not hide it.
pub(crate) fn skipped(test: &str) -> bool {
    match cuda::check(0) {
        Ok(()) => false,
        Err(error) => {
            // A closed standard error is no reason to fail.
            let _ = writeln!(std::io::stderr(), "GPU tests: skipped {test}: {error}");
            true
        }
    }
}

/// A runtime in test mode.
pub(crate) fn runtime() -> Runtime {
    Runtime::new(Device::cuda_with(0, CudaOptions::default().test_mode(true))).unwrap()
}

/// A stream of the user's. cudarc waits for the whole context first, which CUDA refuses while another test captures.
pub(crate) fn new_stream(context: &Arc<CudaContext>) -> Arc<CudaStream> {
    loop {
        match context.new_stream() {
            Err(DriverError(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)) => thread::yield_now(),
            made => return made.unwrap(),
        }
    }
}

/// Free bytes of the device.
pub(crate) fn free_bytes() -> u64 {
    let _context = CudaContext::new(0).unwrap();
    result::mem_get_info().unwrap().0 as u64
}

/// `y[i] = x[i] + 1` for one block of threads, and a kernel that writes where it must not.
pub(crate) const PTX: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    add.f32 %f1, %f1, 0f3F800000;
    st.global.f32 [%d5], %f1;
    ret;
}
.visible .entry crash()
{
    .reg .b64 %d<2>;
    .reg .b32 %r<2>;
    mov.u64 %d1, 16;
    mov.u32 %r1, 7;
    st.global.u32 [%d1], %r1;
    ret;
}
";
