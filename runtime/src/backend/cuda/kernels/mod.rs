//! The operations as kernels: one file of CUDA C++ per family, and beside it how it is launched.
//!
//! Every kernel takes one parameter, a plain struct: its Rust mirror stands in the file that
//! launches it. Sources need no toolkit header.

use bytemuck::Pod;

mod attention;
mod copy;
mod elementwise;
mod host_upload;
mod index;
mod matmul;
mod norm;
mod places;
#[cfg(test)]
mod recording;
mod reduce;
mod rope;
#[cfg(test)]
mod testing;
mod unit;
mod view;
mod walk;

pub(crate) use host_upload::UploadSizeClass;
pub(crate) use matmul::{is_thin as product_is_thin, workspace_bytes as product_workspace};
pub(crate) use unit::{Family, Grid, Kernel, Unit};
pub(crate) use view::{DeviceView, FaultSink};

use super::DeviceProperties;
use crate::{
    Result,
    backend::{Launch, Op, View},
};

/// Shared by every source.
pub(crate) const COMMON: &str = include_str!("common.cuh");

/// What launching needs: implemented by the backend's stream.
pub(crate) trait Submit {
    /// What the device is.
    fn props(&self) -> &DeviceProperties;
    /// Puts one kernel on the stream, or into the capture under way.
    ///
    /// # Errors
    /// What compiling, loading or the driver says.
    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()>;
    /// Where kernels report; `op` of a report is [`Submit::fault_op`] of the operation's name.
    fn faults(&self) -> FaultSink;
    /// The number under which an operation reports.
    fn fault_op(&mut self, name: &'static str) -> u32;
}

/// Submits a kernel with its parameters.
pub(crate) fn submit<P: Pod>(gpu: &mut dyn Submit, kernel: Kernel, grid: Grid, params: &P) -> Result<()> {
    gpu.submit_bytes(kernel, grid, bytemuck::bytes_of(params))
}

/// Workspace that a launch of one of our kernels wants, in bytes: 0 for most.
pub(crate) fn workspace_bytes(props: &DeviceProperties, op: &Op, inputs: &[View], outputs: &[View]) -> u64 {
    match op {
        Op::Attention { .. } => attention::workspace_bytes(props, inputs, outputs),
        Op::MatMul => outputs.first().map_or(0, |y| matmul::workspace_bytes(props, inputs, y)),
        Op::ScatterRows => inputs.first().map_or(0, places::workspace_bytes),
        Op::RopeScatter { .. } => inputs.get(2).map_or(0, places::workspace_bytes),
        Op::ArgMax { .. }
        | Op::Reduce { .. }
        | Op::Softmax { .. }
        | Op::L2Normalize { .. }
        | Op::MaskedMean { .. }
        | Op::MaskedSum { .. } => reduce::workspace_bytes(props, op, inputs, outputs),
        _ => 0,
    }
}

/// Launches an operation. `workspace` is the address of what [`workspace_bytes`] asked for, aligned to
/// 256 bytes, its contents unknown.
///
/// # Errors
/// What [`Submit::submit_bytes`] says.
pub(crate) fn launch(gpu: &mut dyn Submit, launch: &Launch, workspace: u64) -> Result<()> {
    // Nothing to write: a grid of zero blocks is an error in CUDA.
    if launch.outputs.iter().all(|v| v.layout.count() == 0) {
        return Ok(());
    }
    match launch.op {
        Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Where | Op::Cast => {
            elementwise::launch(gpu, launch)
        }
        Op::Copy | Op::Pad | Op::Fill(_) | Op::Arange { .. } | Op::Concat { .. } => copy::launch(gpu, launch),
        Op::Embedding { .. } | Op::Gather { .. } | Op::ScatterRows => index::launch(gpu, launch, workspace),
        Op::LayerNorm { .. } | Op::RmsNorm { .. } | Op::AddRmsNorm { .. } => norm::launch(gpu, launch),
        Op::L2Normalize { .. }
        | Op::Softmax { .. }
        | Op::Reduce { .. }
        | Op::ArgMax { .. }
        | Op::MaskedMean { .. }
        | Op::MaskedSum { .. } => reduce::launch(gpu, launch, workspace),
        Op::Rope { .. } | Op::RopeScatter { .. } => rope::launch(gpu, launch, workspace),
        Op::Attention { .. } => attention::launch(gpu, launch, workspace),
        Op::MatMul => matmul::launch(gpu, launch, workspace),
    }
}
