//! The operation that both functions of this folder launch.

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::{backend::Op, ops::prelude::*};

/// `[x: N, K; w: G, K, M; ends: u32 G] -> [y: N, M]`, accumulated in f32. Rows behind the last end become 0.
pub(super) const GROUPED_MM: Op = Op::fixed(&GroupedMm);

#[derive(Debug)]
struct GroupedMm;

impl Operation for GroupedMm {
    fn name(&self) -> &'static str {
        "grouped_mm"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::grouped_mm(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::grouped_mm(gpu, launch)
    }
}
