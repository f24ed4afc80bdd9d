//! Elements placed without computing with them, and elements made from nothing.

use super::prelude::*;
use crate::observe::inspect::NodeKind;

/// `[x] -> [y]`, same dtype; the output may be strided too.
pub(crate) const COPY: Op = Op::fixed(&Copy);

#[derive(Debug)]
struct Copy;

impl Operation for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn writes_in_place(&self) -> bool {
        true
    }

    fn node_kind(&self) -> NodeKind {
        NodeKind::Copy
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::copy::copy(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy::copy(gpu, &launch.inputs[0], &launch.outputs[0])
    }
}

/// `[x] -> [y]`: `y` is at least as large as `x` in every dimension; the rest is zeroed.
pub(crate) const PAD: Op = Op::fixed(&Pad);

#[derive(Debug)]
struct Pad;

impl Operation for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::copy::pad(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy::pad(gpu, &launch.inputs[0], &launch.outputs[0])
    }
}

/// `[] -> [y]`: every element is the value.
#[derive(Debug)]
pub(crate) struct Fill(pub(crate) f64);

impl Operation for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.0.to_bits());
    }

    fn node_kind(&self) -> NodeKind {
        NodeKind::Fill
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::copy::fill(access, launch, self.0);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy::fill(gpu, &launch.outputs[0], self.0)
    }
}

/// `[] -> [y]`: `y[i] = start + i * step`, computed in f64, then rounded.
#[derive(Debug)]
pub(crate) struct Arange {
    /// First value.
    pub(crate) start: f64,
    /// Difference of neighbours.
    pub(crate) step: f64,
}

impl Operation for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.start.to_bits());
        to.write_u64(self.step.to_bits());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::copy::arange(access, launch, self.start, self.step);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy::arange(gpu, &launch.outputs[0], self.start, self.step)
    }
}

/// `[x0, x1, ..] -> [y]` along `axis`.
#[derive(Debug)]
pub(crate) struct Concat {
    /// Joined axis.
    pub(crate) axis: usize,
}

impl Operation for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_usize(self.axis);
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Ran {
        cpu::copy::concat(access, launch, self.axis);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy::concat(gpu, &launch.inputs, &launch.outputs[0], self.axis)
    }
}
