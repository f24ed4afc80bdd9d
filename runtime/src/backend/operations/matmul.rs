//! Products of matrices.

use super::prelude::*;

/// `[a: .., M, K; b: .., K, N] -> [y: .., M, N]`, accumulated in f32 (integers: wrapping).
/// Batch dimensions are already broadcast (stride 0). An optional third input `[N]`, broadcast to
/// the output's shape, is added.
pub(crate) const MATMUL: Op = Op::fixed(&MatMul);

#[derive(Debug)]
struct MatMul;

impl Operation for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::matmul::matmul(access, launch);
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
        gpu.product_workspace(inputs, &outputs[0], measure)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        gpu.product(&launch.inputs, &launch.outputs[0], launch.workspace)
    }
}
