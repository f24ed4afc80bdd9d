//! Nothing checks that a kernel takes what the launch passes: whoever names it says so.

use graphable::custom::{CudaGrid, CudaKernel, CudaSource};

fn kernel() -> CudaKernel {
    let source = "extern \"C\" __global__ void one(float *y) { *y = 1; }";
    CudaKernel::new(CudaSource::Cuda(source.into()), "one", |_| CudaGrid::for_elements(1, 32))
}

fn main() {
    kernel();
}
