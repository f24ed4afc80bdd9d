//! The operation that [`concat`](super::concat) launches.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};

/// `[x0, x1, ..] -> [y]` along `axis`.
#[derive(Debug)]
pub(super) struct Concat {
    /// Joined axis.
    pub(super) axis: usize,
}

impl Operation for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_usize(self.axis);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::concat(access, launch, self.axis);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::concat(gpu, &launch.inputs, &launch.outputs[0], self.axis)
    }
}
