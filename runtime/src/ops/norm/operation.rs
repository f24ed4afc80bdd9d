//! The operations that the functions of this folder launch.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};

/// `[x: .., D, weight: D, (bias: D)] -> [y]` over the last axis.
#[derive(Debug)]
pub(super) struct LayerNorm {
    /// Added to the variance.
    pub(super) eps: f32,
}

impl Operation for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.eps.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::layer_norm(access, launch, self.eps);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::layer_norm(gpu, launch, self.eps)
    }
}

/// `[x: .., D, weight: D] -> [y]` over the last axis.
#[derive(Debug)]
pub(super) struct RmsNorm {
    /// Added to the mean square.
    pub(super) eps: f32,
}

impl Operation for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.eps.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::rms_norm(access, launch, self.eps);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::rms_norm(gpu, launch, self.eps)
    }
}

/// `[x: .., D, added: .., D, weight: D] -> [sum: .., D, y: .., D]`: `sum = x + added`, rounded to the
/// dtype, then as [`RmsNorm`] of the sum.
#[derive(Debug)]
pub(super) struct AddRmsNorm {
    /// Added to the mean square.
    pub(super) eps: f32,
}

impl Operation for AddRmsNorm {
    fn name(&self) -> &'static str {
        "add_rms_norm"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.eps.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::add_rms_norm(access, launch, self.eps);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::add_rms_norm(gpu, launch, self.eps)
    }
}
