//! Single-kernel graphs, whose parameter is replaced before each launch.
//!
//! Such a launch takes the driver about half the time of a kernel launch, as long as only the parameter
//! changes (`benches/gpu/launches.cu`); with a different grid it took longer than the kernel.

use std::ffi::c_void;

use super::{Exec, Function, Graph, KernelNode, Stream, types::CUkernelNode};
use crate::{Result, backend::cuda::kernels::Grid};

/// A kernel with its grid, ready to be launched with any parameter.
#[derive(Debug)]
pub(crate) struct SingleKernelGraph {
    // Before the graph: it knows its node by it.
    exec: Exec,
    graph: Graph,
    node: KernelNode,
}

impl SingleKernelGraph {
    /// Makes one; `params` is a parameter of the right size, for instance. `None` where the driver cannot, and for clusters that a
    /// launch asks for, which are an attribute of it that a node added like this does not have.
    ///
    /// # Errors
    /// Returns the errors of [`Context::check`](super::Context::check);
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn new(
        stream: &Stream,
        function: Function,
        grid: Grid,
        params: &[u8],
    ) -> Result<Option<Self>> {
        let context = stream.context();
        let Some(api) = context.table.building.as_ref().filter(|_| grid.cluster == 1) else {
            return Ok(None);
        };
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: one handle is written.
        let code = unsafe { (api.create)(&mut raw, 0) };
        context.check("cuGraphCreate", code)?;
        let graph = Graph::adopt(context, raw);
        let mut list = [params.as_ptr().cast_mut().cast::<c_void>()];
        let launch = CUkernelNode {
            function: function.raw(),
            grid: grid.blocks,
            block: [grid.threads, 1, 1],
            shared: grid.shared,
            params: list.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kernel: std::ptr::null_mut(),
            // The bound one.
            context: std::ptr::null_mut(),
        };
        let mut node = std::ptr::null_mut();
        // SAFETY: the graph is ours and has no other node; the kernel takes one parameter of this size, which
        // is copied during the call, as the description is; one handle is written.
        let code = unsafe { (api.add_kernel)(&mut node, graph.raw(), std::ptr::null(), 0, &launch) };
        context.check("cuGraphAddKernelNode", code)?;
        let exec = graph.instantiate(stream)?;
        Ok(Some(Self { exec, node: KernelNode::new(node, launch), graph }))
    }

    /// Launches it with a parameter; launches before keep theirs.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn launch(&self, stream: &Stream, params: &[u8]) -> Result<()> {
        self.exec.set_params(&self.node, params)?;
        self.exec.launch(stream)
    }

    /// Returns the parts that must live until its launches have ended.
    pub(crate) fn into_parts(self) -> (Exec, Graph) {
        (self.exec, self.graph)
    }
}
