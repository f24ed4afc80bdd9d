//! The operation that every function of this folder launches.

#[cfg(feature = "cuda")]
use super::cuda::MatMulKernels;
use super::{super::prelude::*, cpu};
use crate::backend::Op;
#[cfg(feature = "cuda")]
use crate::backend::cuda::kernels::Product;

/// `[a: .., M, K; b: .., K, N] -> [y: .., M, N]`, accumulated in f32 (integers: wrapping).
/// Batch dimensions are already broadcast (stride 0). An optional third input `[N]`, broadcast to
/// the output's shape, is added.
pub(super) const MATMUL: Op = Op::fixed(&MatMul);

#[derive(Debug)]
struct MatMul;

impl Operation for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::matmul(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        measure: bool,
    ) -> crate::Result<u64> {
        let product = Product { inputs, output: &outputs[0], kernels: &MatMulKernels };
        gpu.product_workspace(product, measure)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        let product = Product { inputs: &launch.inputs, output: &launch.outputs[0], kernels: &MatMulKernels };
        gpu.product(product, launch.workspace)
    }
}
