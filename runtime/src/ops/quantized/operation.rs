//! The operations of this folder.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{
    super::{
        gather::PickCounts,
        matmul::{fuse_product, may_fuse_product},
        prelude::*,
    },
    cpu,
    linear::QuantizedLinear,
};
use crate::{
    BlockFormat,
    backend::{Op, View},
};

impl Operation for QuantizedLinear {
    fn name(&self) -> &'static str {
        "quantized_linear"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.format as u8);
        to.write_u8(self.numerics.bits());
        to.write_u8(self.early.into());
    }

    fn may_fuse(&self, launch: &Launch) -> bool {
        may_fuse_product(launch)
    }

    fn fuse(&self, parts: &[&Launch], kept: &[u8]) -> Option<Launch> {
        fuse_product(parts, kept)
    }

    fn early(&self, launch: &Launch, is_constant: &dyn Fn(&View) -> bool) -> Option<Op> {
        let is_new = !self.early && launch.workspace == 0 && is_constant(&launch.inputs[1]);
        is_new.then(|| Self { early: true, ..*self }.into())
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::linear(access, launch, self.format);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        _measure: bool,
    ) -> crate::Result<u64> {
        cuda::workspace(self, gpu, inputs, &outputs[0])
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::linear(self, gpu, launch)
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
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::embedding(gpu, launch, self.format, self.counts)
    }
}
