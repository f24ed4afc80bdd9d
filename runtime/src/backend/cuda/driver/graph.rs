//! Captured graphs and their executables.

use std::{ffi::c_void, sync::Arc};

use rustc_hash::FxHashMap;

use super::{
    Context, Function, GraphRef, Stream,
    error::UPDATE_REFUSED,
    table::Edges as EdgeCalls,
    types::{CUedge, CUinstantiate, CUkernelNode, CUupdate, Handle},
};
use crate::{Error, Result};

/// A captured graph.
#[derive(Debug)]
pub(crate) struct Graph {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: the driver ties graphs to no thread, but does not lock them: calls on one graph, even those that only read it, must
// not overlap (CUDA Driver API, "Graph object thread safety"). They do not: see `Sync`.
unsafe impl Send for Graph {}
// SAFETY: a graph is used only by its backend, whose methods take `&mut self`, and by the runtime that has the backend, which
// is not `Sync`. So calls on a graph never overlap, although several recordings share it.
unsafe impl Sync for Graph {}

/// A kernel node whose parameters are replaced between launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelNode {
    node: Handle,
    params: CUkernelNode,
}

// SAFETY: handles of a graph, used by its one owner.
unsafe impl Send for KernelNode {}
// SAFETY: shared references only read.
unsafe impl Sync for KernelNode {}

impl KernelNode {
    pub(super) fn new(node: Handle, params: CUkernelNode) -> Self {
        // These belong to the call that made it: each launch supplies its own.
        Self { node, params: CUkernelNode { params: std::ptr::null_mut(), ..params } }
    }

    /// Returns whether it is this node.
    pub(super) fn is(&self, node: Handle) -> bool {
        self.node == node
    }

    /// Returns the address of its function.
    pub(super) fn function_address(&self) -> u64 {
        self.params.function.addr() as u64
    }

    /// Returns this node with the launch of the corresponding node in another graph. The nodes of an
    /// executable are identified by the graph from which it was instantiated, whatever it was updated to
    /// since.
    pub(crate) fn launching(&self, other: &Self) -> Self {
        Self { node: self.node, params: other.params }
    }
}

/// The driver's result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updated {
    Done,
    /// The executable is as before: the error that comes with it says that the update was not performed.
    Refused(&'static str),
    /// It is unknown what the executable runs now.
    Broken(&'static str),
}

/// Returns the reason of the driver's refusal, by `CUgraphExecUpdateResult`.
fn refusal(result: i32) -> Updated {
    Updated::Refused(match result {
        1 => return Updated::Broken("an unexpected error"),
        2 => "the topology differs",
        3 => "a node is of another kind",
        4 | 7 => "a kernel is another one, of a kind that cannot take its place",
        5 => "a parameter differs that cannot be changed",
        6 => "a node cannot be updated",
        8 => "an attribute of a node differs",
        _ => "the driver reports no reason",
    })
}

/// An edge that orders all of one node before all of another.
const FULL: CUedge = CUedge { from_port: 0, to_port: 0, kind: 0, reserved: [0; 5] };
/// An edge between kernels, the latter of which waits by itself.
const PROGRAMMATIC: CUedge = CUedge { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };

/// Edges as the driver lists them, each in the same place of all lists.
pub(super) struct Edges {
    pub(super) from: Vec<Handle>,
    pub(super) to: Vec<Handle>,
    pub(super) data: Vec<CUedge>,
}

impl Graph {
    pub(super) fn adopt(context: &Arc<Context>, raw: Handle) -> Self {
        Self { context: Arc::clone(context), raw }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn raw(&self) -> Handle {
        self.raw
    }

    /// Does not destroy it.
    ///
    /// Its share of the context is not given back either. That costs nothing, since the process keeps every context
    /// that is not lost (`Context::open`), and a lost one is not released; and it states what is true: the graph,
    /// wherever the driver keeps it, has nodes whose kernels belong to the context's modules.
    pub(crate) fn leak(self) {
        tracing::warn!("the graph of a capture that was invalidated is not freed");
        std::mem::forget(self);
    }

    /// Returns a body of one of its conditional nodes, which that node owns.
    pub(super) fn body(&self, body: GraphRef) -> std::mem::ManuallyDrop<Self> {
        std::mem::ManuallyDrop::new(Self { context: Arc::clone(&self.context), raw: body.raw() })
    }

    /// Number of nodes of a body of one of its conditional nodes.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn len_of(&self, body: GraphRef) -> Result<usize> {
        self.body(body).count()
    }

    fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: with a null list only the number is written.
        let code = unsafe { (self.context.table.graph_nodes)(self.raw, std::ptr::null_mut(), &mut count) };
        self.context.check("cuGraphGetNodes", code).map(|()| count)
    }

    pub(super) fn nodes(&self) -> Result<Vec<Handle>> {
        let mut count = self.count()?;
        let mut nodes = vec![std::ptr::null_mut(); count];
        if count > 0 {
            // SAFETY: the list has room for `count` handles.
            let code = unsafe { (self.context.table.graph_nodes)(self.raw, nodes.as_mut_ptr(), &mut count) };
            self.context.check("cuGraphGetNodes", code)?;
        }
        Ok(nodes)
    }

    /// Number of nodes.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn len(&self) -> Result<usize> {
        self.count()
    }

    /// The first node that launches `function`.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn find(&self, function: Function) -> Result<Option<KernelNode>> {
        for node in self.nodes()? {
            if let Some(params) = self.kernel(node)?
                && params.function == function.raw()
            {
                return Ok(Some(KernelNode { node, params }));
            }
        }
        Ok(None)
    }

    /// Lets each of `ours`, kernels that wait by themselves, be brought up while the one kernel before it
    /// ends. Does nothing where the device or the driver cannot. Returns whether any edge changed.
    ///
    /// # Errors
    /// See [`Context::check`]. The edges are then as before, unless the driver refuses those as well.
    pub(crate) fn overlap(&self, ours: impl Fn(Function) -> bool) -> Result<bool> {
        let Some(api) = self.context.table.edges.as_ref().filter(|_| self.context.props().overlaps) else {
            return Ok(false);
        };
        let Edges { from, to, data } = self.edges(api)?;
        let count = from.len();
        if count == 0 {
            // One node; the driver takes no empty lists.
            return Ok(false);
        }
        let count_of = |nodes: &[Handle]| {
            let mut counts: FxHashMap<Handle, usize> = FxHashMap::default();
            nodes.iter().for_each(|node| *counts.entry(*node).or_default() += 1);
            counts
        };
        // Where branches diverge or meet, edges remain full: a kernel can wait by itself for only one other
        // kernel.
        let (out_of, into) = (count_of(&from), count_of(&to));
        let mut kernels: FxHashMap<Handle, Option<Function>> = FxHashMap::default();
        for node in self.nodes()? {
            kernels.insert(node, self.kernel(node)?.map(|params| Function::of(params.function)));
        }
        let kernel = |node: &Handle| kernels.get(node).copied().flatten();
        let chosen: Vec<usize> = (0..count)
            .filter(|&i| data[i] == FULL)
            .filter(|&i| out_of.get(&from[i]) == Some(&1) && into.get(&to[i]) == Some(&1))
            .filter(|&i| kernel(&from[i]).is_some() && kernel(&to[i]).is_some_and(&ours))
            .collect();
        let pick = |all: &[Handle]| chosen.iter().map(|&i| all[i]).collect::<Vec<_>>();
        let (from, to) = (pick(&from), pick(&to));
        self.replace_edges(api, &from, &to, FULL, PROGRAMMATIC)?;
        Ok(!from.is_empty())
    }

    /// As [`overlap`](Self::overlap), in a body of one of its conditional nodes.
    ///
    /// # Errors
    /// See [`overlap`](Self::overlap).
    pub(crate) fn overlap_body(&self, body: GraphRef, ours: impl Fn(Function) -> bool) -> Result<bool> {
        self.body(body).overlap(ours)
    }

    /// Makes all edges of a body full again, in which [`overlap_body`](Self::overlap_body) changed some.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn serialize_body(&self, body: GraphRef) -> Result<()> {
        let Some(api) = &self.context.table.edges else { return Ok(()) };
        let graph = self.body(body);
        let Edges { from, to, data } = graph.edges(api)?;
        let early = |nodes: Vec<Handle>| -> Vec<Handle> {
            nodes
                .into_iter()
                .zip(&data)
                .filter(|(_, data)| **data == PROGRAMMATIC)
                .map(|(node, _)| node)
                .collect()
        };
        graph.replace_edges(api, &early(from), &early(to), PROGRAMMATIC, FULL)
    }

    /// Replaces edges, all of which order as `old`, by ones that order as `new`.
    fn replace_edges(
        &self,
        api: &EdgeCalls,
        from: &[Handle],
        to: &[Handle],
        old: CUedge,
        new: CUedge,
    ) -> Result<()> {
        let count = from.len().min(to.len());
        if count == 0 {
            return Ok(());
        }
        let (old, new) = (vec![old; count], vec![new; count]);
        // SAFETY: edges of this graph, as many as the lists hold.
        let code = unsafe { (api.remove)(self.raw, from.as_ptr(), to.as_ptr(), old.as_ptr(), count) };
        self.context.check("cuGraphRemoveDependencies", code)?;
        // SAFETY: nodes of this graph that are not connected now, as many as the lists hold.
        let code = unsafe { (api.add)(self.raw, from.as_ptr(), to.as_ptr(), new.as_ptr(), count) };
        let added = self.context.check("cuGraphAddDependencies", code);
        if added.is_err() {
            // SAFETY: the same nodes of this graph, as many as the lists hold; they are not connected, since the call above failed.
            let code = unsafe { (api.add)(self.raw, from.as_ptr(), to.as_ptr(), old.as_ptr(), count) };
            self.context.check("cuGraphAddDependencies", code)?;
        }
        added
    }

    /// All edges, with how they order.
    pub(super) fn edges(&self, api: &EdgeCalls) -> Result<Edges> {
        let mut count = 0;
        let none = std::ptr::null_mut();
        // SAFETY: with null lists only the number is written.
        let code = unsafe { (api.get)(self.raw, none, none.cast(), std::ptr::null_mut(), &mut count) };
        self.context.check("cuGraphGetEdges", code)?;
        let mut from = vec![std::ptr::null_mut(); count];
        let (mut to, mut data) = (from.clone(), vec![CUedge::default(); count]);
        if count > 0 {
            // SAFETY: the lists have room for `count` edges.
            let code = unsafe {
                (api.get)(self.raw, from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut count)
            };
            self.context.check("cuGraphGetEdges", code)?;
        }
        Ok(Edges { from, to, data })
    }

    /// Returns the driver's number for the kind of a node.
    pub(super) fn kind(&self, node: Handle) -> Result<i32> {
        let mut kind = -1;
        // SAFETY: a node of this graph; one integer is written.
        let code = unsafe { (self.context.table.node_type)(node, &mut kind) };
        self.context.check("cuGraphNodeGetType", code)?;
        Ok(kind)
    }

    /// Returns the launch of a node, if it is a kernel.
    pub(super) fn kernel(&self, node: Handle) -> Result<Option<CUkernelNode>> {
        const KERNEL: i32 = 0;
        if self.kind(node)? != KERNEL {
            return Ok(None);
        }
        let mut params = CUkernelNode {
            function: std::ptr::null_mut(),
            grid: [0; 3],
            block: [0; 3],
            shared: 0,
            params: std::ptr::null_mut(),
            extra: std::ptr::null_mut(),
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        };
        // SAFETY: a kernel node of this graph; its description is written.
        let code = unsafe { (self.context.table.node_kernel)(node, &mut params) };
        self.context.check("cuGraphKernelNodeGetParams", code)?;
        Ok(Some(params))
    }

    /// Makes it ready to run, its device memory uploaded on `stream`.
    ///
    /// # Errors
    /// Returns the errors of [`Context::check`]; [`Error::OutOfMemory`].
    pub(crate) fn instantiate(&self, stream: &Stream) -> Result<Exec> {
        const UPLOAD: u64 = 2;
        const FAILED: [&str; 7] = [
            "",
            "an error (1)",
            "invalid structure: a capture with a cycle or a foreign node",
            "an operation that graphs do not support",
            "it spans more than one context",
            "a conditional node is wrong",
            "another graph",
        ];
        let _bound = self.context.bind()?;
        let mut raw = std::ptr::null_mut();
        let mut params = CUinstantiate {
            flags: UPLOAD,
            upload_stream: stream.raw(),
            error_node: std::ptr::null_mut(),
            result: 0,
        };
        // SAFETY: one handle and the outcome are written; the graph and the stream live.
        let code = unsafe { (self.context.table.graph_instantiate)(&mut raw, self.raw, &mut params) };
        self.context.check("cuGraphInstantiate", code).map_err(|error| match error {
            Error::Device { device, call, reason } => {
                let more = FAILED.get(params.result as usize).copied().unwrap_or_default();
                Error::Device {
                    device,
                    call,
                    reason: if more.is_empty() { reason } else { format!("{reason}: {more}") },
                }
            }
            Error::OutOfMemory { device, .. } => {
                Error::OutOfMemory { device, bytes: 0, what: "instantiating a graph" }
            }
            other => other,
        })?;
        Ok(Exec { context: Arc::clone(&self.context), raw })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Without one too: graphs are plain memory of the driver.
        let _bound = self.context.bind();
        // SAFETY: adopted from whoever made it; executables do not need it.
        unsafe { (self.context.table.graph_destroy)(self.raw) };
    }
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Exec {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: the driver ties executables to no thread; that they must not be used by two at the same time (CUDA Driver API,
// "Graph object thread safety") is ensured as for `Graph`.
unsafe impl Send for Exec {}
// SAFETY: launches and updates go through the backend, whose methods take `&mut self`, so they never overlap.
unsafe impl Sync for Exec {}

impl Exec {
    /// Runs it.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles live, and the owner of the executable keeps what the nodes use.
        let code = unsafe { (self.context.table.exec_launch)(self.raw, stream.raw()) };
        self.context.check("cuGraphLaunch", code)
    }

    /// Makes later launches run `graph`; earlier ones run what they were launched with.
    ///
    /// # Errors
    /// Returns the errors of [`Context::check`]; it is then unknown what the executable runs.
    pub(crate) fn update(&self, graph: &Graph) -> Result<Updated> {
        let Some(api) = &self.context.table.updates else {
            return Ok(Updated::Refused("the driver has no `cuGraphExecUpdate`"));
        };
        let _bound = self.context.bind()?;
        let mut info = CUupdate { result: 0, node: std::ptr::null_mut(), from: std::ptr::null_mut() };
        // SAFETY: both handles live, and the graph is not changed meanwhile; the outcome is written. Launches
        // that are enqueued or run are not affected (driver documentation of graph updates).
        let code = unsafe { (api.update)(self.raw, graph.raw, &mut info) };
        if code == UPDATE_REFUSED {
            return Ok(refusal(info.result));
        }
        self.context.check("cuGraphExecUpdate", code).map(|()| Updated::Done)
    }

    /// Replaces the one parameter of a kernel node for later launches; earlier ones keep theirs.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn set_params(&self, node: &KernelNode, params: &[u8]) -> Result<()> {
        let mut list = [params.as_ptr().cast_mut().cast::<c_void>()];
        let described =
            CUkernelNode { params: list.as_mut_ptr(), extra: std::ptr::null_mut(), ..node.params };
        // SAFETY: the node is of the graph that this was made from, which its owner keeps, also where it was
        // updated since; the kernel takes one parameter of this size, copied during the call.
        let code = unsafe { (self.context.table.exec_set_kernel)(self.raw, node.node, &described) };
        self.context.check("cuGraphExecKernelNodeSetParams", code)
    }
}

impl Drop for Exec {
    /// The owner has waited for launches in flight.
    fn drop(&mut self) {
        let Ok(_bound) = self.context.bind() else { return };
        // SAFETY: made by `instantiate`; nothing launches it any more.
        unsafe { (self.context.table.exec_destroy)(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::{self, CUgraphExecUpdateResult as Theirs};

    use super::*;

    #[test]
    fn refusals_are_those_of_the_headers() {
        let of = |theirs: Theirs| refusal(theirs as i32);
        assert_eq!(sys::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE as i32, UPDATE_REFUSED);
        assert!(matches!(of(Theirs::CU_GRAPH_EXEC_UPDATE_ERROR), Updated::Broken(_)));
        for (theirs, reason) in [
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "topology"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, "another kind"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, "kernel"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, "kernel"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, "parameter"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, "cannot be updated"),
            (Theirs::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, "attribute"),
        ] {
            assert!(matches!(of(theirs), Updated::Refused(said) if said.contains(reason)), "{theirs:?}");
        }
    }
}
