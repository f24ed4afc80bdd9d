//! The operations of this folder.

use super::{
    super::{gather::PickCounts, prelude::*},
    cpu,
};
use crate::BlockFormat;

/// `[x: M, K; blocks: u8 N, bytes of a row; (bias: N)] -> [y: M, N]`: `y = x w^T + bias`.
#[derive(Debug)]
pub(super) struct QuantizedLinear {
    pub(super) format: BlockFormat,
}

impl Operation for QuantizedLinear {
    fn name(&self) -> &'static str {
        "quantized_linear"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.format as u8);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::linear(access, launch, self.format);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_supports(&self, _: &mut dyn Submit) -> crate::Result<bool> {
        Ok(false)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, _: &mut dyn Submit, _: &Launch) -> crate::Result<()> {
        unreachable!("the functions ask whether the device supports it")
    }
}

/// `[ids: u32 .., blocks: u8 V, bytes of a row; (counts)] -> [y: .., D]`. Rows out of range fault and read as zeros.
#[derive(Debug)]
pub(super) struct QuantizedEmbedding {
    pub(super) format: BlockFormat,
    /// The sizes that are counted on the device.
    pub(super) counts: PickCounts,
}

impl Operation for QuantizedEmbedding {
    /// That of the function, which a fault names.
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.format as u8);
        to.write_u8(self.counts.bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::embedding(access, launch, self.format, self.counts)
    }

    #[cfg(feature = "cuda")]
    fn cuda_supports(&self, _: &mut dyn Submit) -> crate::Result<bool> {
        Ok(false)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, _: &mut dyn Submit, _: &Launch) -> crate::Result<()> {
        unreachable!("the functions ask whether the device supports it")
    }
}
