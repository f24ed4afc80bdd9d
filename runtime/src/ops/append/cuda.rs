//! Appending on a GPU: `append.cu`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::operation::Append;
use crate::{
    Result,
    backend::{
        HostLog, Launch,
        cuda::kernels::{Grid, Kernel, SourceFile, Submit, submit},
    },
};

static SOURCE: SourceFile = SourceFile::ours("append/append.cu", include_str!("append.cu"));

/// Mirrors `AppendParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct AppendParams {
    from: u64,
    count: u64,
    state: u64,
    log: u64,
    elements: u32,
    width: u32,
    size: u32,
    capacity: u32,
}
const _: () = assert!(size_of::<AppendParams>() == 48);

pub(super) fn append(gpu: &mut dyn Submit, launch: &Launch, op: &Append) -> Result<()> {
    let source = &launch.inputs[0];
    let elements = source.layout.count() as u32;
    let params = AppendParams {
        from: source.addr,
        count: launch.inputs.get(1).map_or(0, |count| count.addr),
        state: launch.outputs[0].addr,
        log: op.log.device_addr(),
        elements,
        width: op.width,
        size: source.dtype.size() as u32,
        capacity: op.log.words().len() as u32,
    };
    let threads = elements.min(256).next_multiple_of(32);
    submit(gpu, Kernel::plain(&SOURCE, "append"), Grid::line(1, threads), &params)?;
    // Nothing else in a recording does so: the core does not know this memory.
    let log: Arc<dyn HostLog> = Arc::clone(&op.log);
    gpu.keep_with_recording(log);
    Ok(())
}
