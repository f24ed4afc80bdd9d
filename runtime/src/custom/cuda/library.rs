//! A launch of a user's library.

use std::{any::Any, sync::Arc};

use crate::{
    Result,
    backend::{
        Launch, Operation as _,
        cuda::{
            custom::{CudaCall, CudaLibrary, LibraryError},
            kernels::Submit,
        },
        shapes::Shapes,
    },
    base::contained::Contained,
    custom::operation::CustomOperation,
};

/// Lets a library prepare a launch; returns the bytes of workspace that it needs.
pub(in crate::custom) fn prepare(
    library: &Arc<dyn CudaLibrary>,
    gpu: &mut dyn Submit,
    op: &CustomOperation,
    shapes: &Shapes<'_>,
) -> Result<u64> {
    let mut bytes = 0;
    gpu.work_in_context(&mut |context| {
        let prepared = op.guarded(|| said_by(op, library.prepare(context, shapes)))?;
        bytes = prepared?;
        Ok(())
    })?;
    Ok(bytes)
}

fn said_by<T>(op: &CustomOperation, result: Result<T, LibraryError>) -> Result<T> {
    result.map_err(|error| op.failed(error.to_string()))
}

/// Lets a library launch on the stream.
pub(in crate::custom) fn launch(
    library: &Arc<dyn CudaLibrary>,
    gpu: &mut dyn Submit,
    op: &CustomOperation,
    launch: &Launch,
) -> Result<()> {
    let keep: Box<dyn Any + Send + Sync> = Box::new(Contained::new(Arc::clone(library)));
    gpu.work_on_stream(keep, &mut |stream, is_captured| {
        let operands = op.shapes(&launch.inputs, &launch.outputs);
        let call = CudaCall::new(op.name(), stream, is_captured, operands, launch.workspace);
        // The error is the library's, too: its message and its drop may panic, and the caller restores the thread's state.
        op.guarded(|| said_by(op, library.launch(&call)))?
    })
}
