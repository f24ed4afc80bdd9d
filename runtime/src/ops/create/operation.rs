//! The operations that the functions of this folder launch.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{super::prelude::*, cpu};
use crate::{Element, observe::inspect::NodeKind};

/// `[] -> [y]`: every element is the one with these bits, the lowest first.
#[derive(Debug)]
pub(super) struct Fill(pub(super) u64);

impl Fill {
    /// Every element is `value`.
    pub(super) fn of<T: Element>(value: T) -> Self {
        let mut bytes = [0; 8];
        bytes[..T::DTYPE.size()].copy_from_slice(bytemuck::bytes_of(&value.to_repr()));
        Self(u64::from_le_bytes(bytes))
    }
}

impl Operation for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.0);
    }

    fn node_kind(&self) -> NodeKind {
        NodeKind::Fill
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::fill(access, launch, self.0);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::fill(gpu, &launch.outputs[0], self.0)
    }
}

/// `[] -> [y]`: `y[i] = start + i * step`, computed in f64, then rounded.
#[derive(Debug)]
pub(super) struct Arange {
    /// First value.
    pub(super) start: f64,
    /// Difference of neighbours.
    pub(super) step: f64,
}

impl Operation for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.start.to_bits());
        to.write_u64(self.step.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::arange(access, launch, self.start, self.step);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::arange(gpu, &launch.outputs[0], self.start, self.step)
    }
}
