//! Conditional nodes, and captures into graphs that exist already.

use super::{
    CaptureDependencies, Stream,
    table::Conditionals,
    types::{CUconditional, CUedge, Handle},
};
use crate::{Error, Result};

/// A graph that is part of another one, or that is being captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GraphRef(Handle);

// SAFETY: the driver ties graphs to no thread.
unsafe impl Send for GraphRef {}
// SAFETY: shared references only copy the handle.
unsafe impl Sync for GraphRef {}

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node(pub(super) Handle);

// SAFETY: the driver ties nodes to no thread.
unsafe impl Send for Node {}
// SAFETY: shared references only copy the handle.
unsafe impl Sync for Node {}

/// The value that decides what one conditional node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConditionalHandle(u64);

impl ConditionalHandle {
    /// The handle as kernels take it.
    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

/// `CUgraphConditionalNodeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionalKind {
    /// Runs its body if the value is not 0.
    If = 0,
    /// Runs its body as long as the value is not 0.
    While = 1,
    /// Runs the body whose number the value is.
    Switch = 2,
}

impl GraphRef {
    pub(super) fn captured(raw: Handle) -> Self {
        Self(raw)
    }

    pub(super) fn raw(self) -> Handle {
        self.0
    }
}

impl CaptureDependencies {
    /// Of work that waits for nothing.
    pub(crate) fn none() -> Self {
        Self::of(Vec::new())
    }

    /// Of work that waits for one node.
    pub(crate) fn on(node: Node) -> Self {
        Self::of(vec![node.0])
    }
}

impl Stream {
    /// Returns whether the driver has the functions for conditional nodes.
    pub(crate) fn has_conditionals(&self) -> bool {
        self.has_waits() && self.context().table.conditionals.is_some()
    }

    fn conditionals(&self) -> Result<&Conditionals> {
        self.context().table.conditionals.as_ref().ok_or_else(|| Error::Device {
            device: self.context().name().to_owned(),
            call: "cuGraphConditionalHandleCreate",
            reason: "this driver has no such function; conditional nodes need CUDA 12.4".into(),
        })
    }

    /// Creates the value for a node of `graph`. At each launch of the graph it is 0 until a kernel sets it.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn new_conditional(&self, graph: GraphRef) -> Result<ConditionalHandle> {
        const ASSIGN_DEFAULT: u32 = 1;
        let create = self.conditionals()?.create;
        let mut handle = 0;
        // SAFETY: the graph lives, as its owner does; one handle is written.
        let code = unsafe { create(&mut handle, graph.0, self.context().raw(), 0, ASSIGN_DEFAULT) };
        self.context().check("cuGraphConditionalHandleCreate", code)?;
        Ok(ConditionalHandle(handle))
    }

    /// Adds a node to a graph. Returns it, and the graphs of its bodies, which it owns.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn add_conditional(
        &self,
        graph: GraphRef,
        waits: &CaptureDependencies,
        handle: ConditionalHandle,
        kind: ConditionalKind,
        bodies: usize,
    ) -> Result<(Node, Vec<GraphRef>)> {
        let add = self.conditionals()?.add;
        let mut params = CUconditional::new(handle.0, kind as i32, bodies as u32, self.context().raw());
        let (mut node, nodes) = (std::ptr::null_mut(), waits.nodes());
        let full = vec![CUedge::default(); nodes.len()];
        // SAFETY: the graph lives, and nothing else changes it; the lists hold as many nodes of it, and edges, as
        // their length; the handle was created for this graph and is used once. One node and the address of the
        // bodies are written.
        let code =
            unsafe { add(&mut node, graph.0, nodes.as_ptr(), full.as_ptr(), nodes.len(), &mut params) };
        self.context().check("cuGraphAddNode", code)?;
        let failed = || Error::Device {
            device: self.context().name().to_owned(),
            call: "cuGraphAddNode",
            reason: "the conditional node has no bodies".into(),
        };
        if params.graphs.is_null() {
            return Err(failed());
        }
        // SAFETY: the driver's array of as many graphs as were asked for, which lives as long as the node.
        let graphs = unsafe { std::slice::from_raw_parts(params.graphs, bodies) };
        Ok((Node(node), graphs.iter().map(|&graph| GraphRef(graph)).collect()))
    }

    /// Adds a node that does nothing to a graph without nodes.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn fill_if_empty(&self, graph: GraphRef) -> Result<()> {
        let (add, mut count) = (self.conditionals()?.add_empty, 0);
        // SAFETY: the graph lives; with a null list only the number is written.
        let code = unsafe { (self.context().table.graph_nodes)(graph.0, std::ptr::null_mut(), &mut count) };
        self.context().check("cuGraphGetNodes", code)?;
        if count > 0 {
            return Ok(());
        }
        let mut node = std::ptr::null_mut();
        // SAFETY: the graph lives, and nothing else changes it; the list is empty; one node is written.
        let code = unsafe { add(&mut node, graph.0, std::ptr::null(), 0) };
        self.context().check("cuGraphAddEmptyNode", code)
    }

    /// Starts to capture the work of this thread on the stream into a graph, behind these nodes of it.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn begin_capture_to(&self, graph: GraphRef, waits: &CaptureDependencies) -> Result<()> {
        const THREAD_LOCAL: i32 = 1;
        let begin = self.conditionals()?.begin_capture_to;
        let nodes = waits.nodes();
        let full = vec![CUedge::default(); nodes.len()];
        // SAFETY: the stream and the graph live; the stream captures nothing; the lists hold as many nodes of the
        // graph, and edges, as their length, and are copied.
        let code =
            unsafe { begin(self.raw(), graph.0, nodes.as_ptr(), full.as_ptr(), nodes.len(), THREAD_LOCAL) };
        self.context().check("cuStreamBeginCaptureToGraph", code)
    }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::CUgraphConditionalNodeType as Theirs;

    use super::*;

    #[test]
    fn kinds_are_those_of_the_headers() {
        for (theirs, ours) in [
            (Theirs::CU_GRAPH_COND_TYPE_IF, ConditionalKind::If),
            (Theirs::CU_GRAPH_COND_TYPE_WHILE, ConditionalKind::While),
        ] {
            assert_eq!(theirs as i32, ours as i32);
        }
    }
}
