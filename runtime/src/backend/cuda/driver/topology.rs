//! A captured graph, read back from the driver.

use std::ffi::{CStr, c_char};

use rustc_hash::FxHashMap;

use super::{
    Function, Graph, GraphRef, Node,
    graph::Edges,
    types::{CUedge, CUfillNode, CUkernelNode, Handle},
};
use crate::{
    Error, Result,
    observe::inspect::{EdgeKind, GraphEdge, GraphNode, NodeKind, Topology},
};

impl Graph {
    /// Returns nodes and edges as the driver lists them. `ours` names the kernels that we loaded, for drivers
    /// that do not report names; `bodies` are those of its conditional nodes, and of theirs.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn topology<'n>(
        &self,
        ours: &dyn Fn(Function) -> Option<&'n str>,
        bodies: &FxHashMap<Node, Vec<GraphRef>>,
    ) -> Result<Topology> {
        let handles = self.nodes()?;
        let mut nodes = Vec::with_capacity(handles.len());
        for &handle in &handles {
            let mut node = self.described(handle, ours)?;
            for &body in bodies.get(&Node(handle)).into_iter().flatten() {
                node.bodies.push(self.body(body).topology(ours, bodies)?);
            }
            nodes.push(node);
        }
        let place: FxHashMap<Handle, usize> = handles.iter().enumerate().map(|(i, &h)| (h, i)).collect();
        let Edges { from, to, data } = match &self.context().table.edges {
            Some(api) => self.edges(api)?,
            None => self.plain_edges()?,
        };
        let mut edges = Vec::with_capacity(from.len());
        for ((from, to), data) in from.iter().zip(&to).zip(data) {
            if let (Some(&from), Some(&to)) = (place.get(from), place.get(to)) {
                edges.push(edge(from, to, data));
            }
        }
        Ok(Topology::new(nodes, edges))
    }

    fn described<'n>(&self, handle: Handle, ours: &dyn Fn(Function) -> Option<&'n str>) -> Result<GraphNode> {
        let kind = kind(self.kind(handle)?);
        if kind == NodeKind::Fill {
            let fill = self.fill(handle)?;
            let bytes = fill.width as u64 * u64::from(fill.element) * fill.height as u64;
            return Ok(GraphNode { bytes: Some(bytes), ..GraphNode::new(kind, "") });
        }
        let Some(params) = self.kernel(handle)? else { return Ok(GraphNode::new(kind, "")) };
        let known = ours(Function::of(params.function)).map(str::to_owned);
        let name = known.or_else(|| self.name(&params)).unwrap_or_default();
        Ok(GraphNode {
            grid: Some(params.grid),
            block: Some(params.block),
            shared_bytes: params.shared,
            ..GraphNode::new(kind, name)
        })
    }

    pub(super) fn fill(&self, node: Handle) -> Result<CUfillNode> {
        let mut params = CUfillNode::default();
        // SAFETY: a fill node of this graph; its description is written.
        let code = unsafe { (self.context().table.node_fill)(node, &mut params) };
        self.context().check("cuGraphMemsetNodeGetParams", code)?;
        Ok(params)
    }

    /// Returns the driver's name of a kernel. Not every kernel has one, and this is not a failure of the
    /// recording.
    fn name(&self, params: &CUkernelNode) -> Option<String> {
        let reading = &self.context().table.reading;
        let (name, handle) = match params.function.is_null() {
            false => (reading.function_name?, params.function),
            true => (reading.kernel_name?, params.kernel),
        };
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the launch of a node in this graph; the address of a string is written.
        let code = unsafe { name(&mut text, handle) };
        if code != 0 || text.is_null() {
            return None;
        }
        // SAFETY: not null, so it is the driver's terminated string, which lives as long as the module.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }

    /// The edges of a driver that knows only one kind of them.
    fn plain_edges(&self) -> Result<Edges> {
        let Some(get) = self.context().table.reading.plain_edges else {
            return Err(Error::Device {
                device: self.context().name().to_owned(),
                call: "cuGraphGetEdges",
                reason: "this driver has no such function; a newer one is needed to read a graph back".into(),
            });
        };
        let mut count = 0;
        let none = std::ptr::null_mut();
        // SAFETY: with null lists only the number is written.
        let code = unsafe { get(self.raw(), none, none.cast(), &mut count) };
        self.context().check("cuGraphGetEdges", code)?;
        let mut from = vec![std::ptr::null_mut(); count];
        let mut to = from.clone();
        if count > 0 {
            // SAFETY: the lists have room for `count` edges.
            let code = unsafe { get(self.raw(), from.as_mut_ptr(), to.as_mut_ptr(), &mut count) };
            self.context().check("cuGraphGetEdges", code)?;
        }
        Ok(Edges { data: vec![CUedge::default(); count], from, to })
    }
}

/// `CUgraphNodeType`.
fn kind(number: i32) -> NodeKind {
    match number {
        0 => NodeKind::Kernel,
        1 => NodeKind::Copy,
        2 => NodeKind::Fill,
        3 => NodeKind::Host,
        4 => NodeKind::Graph,
        5 => NodeKind::Empty,
        6 => NodeKind::WaitEvent,
        7 => NodeKind::RecordEvent,
        8 => NodeKind::SignalSemaphore,
        9 => NodeKind::WaitSemaphore,
        10 => NodeKind::Allocate,
        11 => NodeKind::Free,
        12 => NodeKind::BatchMemory,
        13 => NodeKind::Conditional,
        other => NodeKind::Other(other),
    }
}

/// `CUgraphEdgeData`.
fn edge(from: usize, to: usize, data: CUedge) -> GraphEdge {
    let kind = match data.kind {
        0 => EdgeKind::Full,
        1 => EdgeKind::Programmatic,
        other => EdgeKind::Other(other),
    };
    GraphEdge { from, to, kind, from_port: data.from_port, to_port: data.to_port }
}

#[cfg(test)]
mod tests {
    use std::{ffi::CString, io::Write as _};

    use cudarc::driver::sys::{self, CUgraphNodeType as Type};

    use super::{
        super::{Context, Event, Pool, Stream},
        *,
    };

    /// Against the driver's own list of nodes, and its own dump of the graph.
    #[test]
    fn our_dump_is_the_drivers() {
        let context = match Context::open(0) {
            Ok(context) => context,
            Err(error) => {
                // A closed standard error is not a reason to fail.
                let _ = writeln!(std::io::stderr(), "GPU tests: skipped our_dump_is_the_drivers: {error}");
                return;
            }
        };
        let (main, side) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
        let pool = Pool::new(&context).unwrap();
        let addr = pool.alloc(&main, 4096, "a test").unwrap();
        main.synchronize().unwrap();
        let event = || Event::new(&context, false).unwrap();
        let (forked, joined) = (event(), event());
        main.begin_capture().unwrap();
        main.fill(addr, 1, 1024).unwrap();
        forked.record(&main).unwrap();
        side.wait_for(&forked).unwrap();
        main.fill(addr, 2, 512).unwrap();
        side.fill(addr + 1024, 3, 256).unwrap();
        joined.record(&side).unwrap();
        main.wait_for(&joined).unwrap();
        main.fill(addr + 2048, 4, 128).unwrap();
        let graph = main.end_capture().1.unwrap();
        let ours = graph.topology(&|_| None, &FxHashMap::default()).unwrap();

        let mut nodes = 0;
        // SAFETY: with a null list only the number is written; the graph lives.
        let code = unsafe { sys::cuGraphGetNodes(graph.raw().cast(), std::ptr::null_mut(), &mut nodes) };
        assert_eq!((code, ours.nodes.len()), (sys::CUresult::CUDA_SUCCESS, nodes));
        let path = std::env::temp_dir().join(format!("graphable-dump-{}.dot", std::process::id()));
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the graph lives, the path is terminated; the driver writes a file.
        let code = unsafe { sys::cuGraphDebugDotPrint(graph.raw().cast(), name.as_ptr(), 0) };
        assert_eq!(code, sys::CUresult::CUDA_SUCCESS);
        let dump = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ours.edges.len(), dump.matches("->").count(), "{dump}");

        assert_eq!((nodes, ours.edges.len(), ours.count(NodeKind::Fill)), (4, 4, 4), "a diamond: {ours}");
        let mut bytes: Vec<_> = ours.nodes.iter().map(|n| n.bytes).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, [Some(128), Some(256), Some(512), Some(1024)]);
        assert!(ours.edges.iter().all(|e| (e.kind, e.from_port, e.to_port) == (EdgeKind::Full, 0, 0)));
        pool.free(&main, addr).unwrap();
        main.synchronize().unwrap();
    }

    #[test]
    fn kinds_are_those_of_the_headers() {
        for (theirs, ours) in [
            (Type::CU_GRAPH_NODE_TYPE_KERNEL, NodeKind::Kernel),
            (Type::CU_GRAPH_NODE_TYPE_MEMCPY, NodeKind::Copy),
            (Type::CU_GRAPH_NODE_TYPE_MEMSET, NodeKind::Fill),
            (Type::CU_GRAPH_NODE_TYPE_HOST, NodeKind::Host),
            (Type::CU_GRAPH_NODE_TYPE_GRAPH, NodeKind::Graph),
            (Type::CU_GRAPH_NODE_TYPE_EMPTY, NodeKind::Empty),
            (Type::CU_GRAPH_NODE_TYPE_WAIT_EVENT, NodeKind::WaitEvent),
            (Type::CU_GRAPH_NODE_TYPE_EVENT_RECORD, NodeKind::RecordEvent),
            (Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, NodeKind::SignalSemaphore),
            (Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, NodeKind::WaitSemaphore),
            (Type::CU_GRAPH_NODE_TYPE_MEM_ALLOC, NodeKind::Allocate),
            (Type::CU_GRAPH_NODE_TYPE_MEM_FREE, NodeKind::Free),
            (Type::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, NodeKind::BatchMemory),
            (Type::CU_GRAPH_NODE_TYPE_CONDITIONAL, NodeKind::Conditional),
        ] {
            assert_eq!(kind(theirs as i32), ours);
        }
        assert_eq!(kind(99), NodeKind::Other(99));
    }
}
