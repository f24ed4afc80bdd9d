//! Copies and padding: the operations with which the runtime itself moves memory.

use std::hash::Hasher;

#[cfg(feature = "cuda")]
use crate::backend::cuda::kernels::Submit;
use crate::{
    backend::{
        Launch, Op, Operation,
        cpu::{Access, Fault},
    },
    observe::inspect::NodeKind,
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

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

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::copy(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::copy(gpu, &launch.inputs[0], &launch.outputs[0])
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

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::pad(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        cuda::pad(gpu, &launch.inputs[0], &launch.outputs[0])
    }
}
