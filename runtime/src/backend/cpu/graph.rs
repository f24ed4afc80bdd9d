//! The result of a capture: launches with their addresses.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use rustc_hash::FxHasher;

use super::{
    conditional::ConditionalNode,
    order::{Hazards, Path},
    stream::Shared,
};
use crate::{
    Error, Result,
    backend::{CapturedGraph, GraphExec, Launch, SharedMemory, Signature},
    observe::inspect::{GraphEdge, GraphNode, NodeKind, Topology},
};

/// Bytes that a node touches, `[start, end)`.
pub(super) type Range = (u64, u64);

/// One recorded call.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "almost all nodes are launches, read one after the other")]
pub(super) enum Node {
    Launch(Launch),
    /// Fills `[addr, addr + bytes)` with 0xFF.
    Poison {
        addr: u64,
        bytes: u64,
    },
    /// Runs other nodes, depending on a value in memory.
    Conditional(Arc<ConditionalNode>),
}

impl Node {
    fn shown(&self) -> GraphNode {
        let (kind, name) = match self {
            Self::Conditional(node) => {
                let bodies = node.bodies.iter().map(|b| topology(&b.nodes, b.hazards.as_ref())).collect();
                return GraphNode { bodies, ..GraphNode::new(NodeKind::Conditional, node.node.name) };
            }
            Self::Launch(launch) => (launch.op.operation().node_kind(), launch.op.name()),
            Self::Poison { .. } => (NodeKind::Fill, "poison"),
        };
        let bytes = match self {
            Self::Launch(launch) => {
                launch.outputs.iter().map(|v| v.layout.count() * v.dtype.size()).sum::<usize>() as u64
            }
            Self::Poison { bytes, .. } => *bytes,
            Self::Conditional(_) => 0,
        };
        GraphNode { bytes: Some(bytes), ..GraphNode::new(kind, name) }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Launch(launch) => launch.op.name(),
            Self::Poison { .. } => "the poison of freed memory",
            Self::Conditional(node) => node.node.name,
        }
    }

    /// The number of nodes that it is, with those of its bodies.
    fn count(&self) -> usize {
        match self {
            Self::Launch(_) | Self::Poison { .. } => 1,
            Self::Conditional(node) => {
                1 + node.bodies.iter().flat_map(|body| &body.nodes).map(Self::count).sum::<usize>()
            }
        }
    }

    /// The ranges of bytes that are read, and that are written.
    pub(super) fn ranges(&self) -> (Vec<Range>, Vec<Range>) {
        match self {
            Self::Launch(launch) => (
                launch.inputs.iter().map(|v| v.range()).collect(),
                launch.outputs.iter().map(|v| v.range()).collect(),
            ),
            Self::Poison { addr, bytes } => (Vec::new(), vec![(*addr, addr + bytes)]),
            Self::Conditional(node) => node.ranges(),
        }
    }
}

/// Returns the properties that two graphs must share so that an executable can run either: as on a GPU, these are the kinds of
/// the commands and the branches that contain them. Hazards depend on addresses and may differ. A graph with a conditional node
/// shares with no other, as on a GPU.
fn signature(nodes: &[Node], paths: &[Path]) -> Result<Signature, &'static str> {
    if nodes.iter().any(|node| matches!(node, Node::Conditional(_))) {
        return Err("it has nodes that cannot be updated, such as conditional ones");
    }
    let words = nodes.iter().zip(paths).map(|(node, path)| {
        let mut h = FxHasher::default();
        matches!(node, Node::Launch(_)).hash(&mut h);
        path.hash(&mut h);
        h.finish()
    });
    Ok(Signature::new(words.collect()))
}

/// Every command, and the direct dependencies between them. In test mode any order that they allow
/// may run; otherwise commands run in the order in which they were recorded.
fn topology(nodes: &[Node], hazards: Option<&Hazards>) -> Topology {
    let edges = match hazards {
        Some(hazards) => hazards.direct(),
        None => Hazards::of(nodes).direct(),
    };
    let edges = edges.into_iter().map(|(from, to)| GraphEdge::full(from, to)).collect();
    Topology::new(nodes.iter().map(Node::shown).collect(), edges)
}

/// The nodes of a recording, in their order, and the memory that they need.
pub(super) struct Graph {
    id: u64,
    pub(super) nodes: Vec<Node>,
    /// In test mode: nodes run in any order that these allow.
    pub(super) hazards: Option<Hazards>,
    _retained: Vec<SharedMemory>,
}

impl Graph {
    pub(super) fn new(nodes: Vec<Node>, shuffle: bool, retained: Vec<SharedMemory>) -> Self {
        let hazards = shuffle.then(|| Hazards::of(&nodes));
        Self { id: crate::value::owned::next_id(), nodes, hazards, _retained: retained }
    }

    /// The number of nodes, with those of bodies.
    fn count(&self) -> usize {
        self.nodes.iter().map(Node::count).sum()
    }

    fn bytes(&self) -> u64 {
        let inside = self.count() - self.nodes.len();
        (size_of::<Self>() + (self.nodes.capacity() + inside) * size_of::<Node>()) as u64
    }

    fn topology(&self) -> Topology {
        topology(&self.nodes, self.hazards.as_ref())
    }
}

/// A graph that several executables can run.
pub(super) struct CpuCapturedGraph {
    graph: Arc<Graph>,
    signature: Result<Signature, &'static str>,
    pub(super) stream: Arc<Shared>,
}

impl CpuCapturedGraph {
    pub(super) fn new(graph: Graph, paths: &[Path], stream: Arc<Shared>) -> Self {
        Self { signature: signature(&graph.nodes, paths), graph: Arc::new(graph), stream }
    }
}

impl CapturedGraph for CpuCapturedGraph {
    fn id(&self) -> u64 {
        self.graph.id
    }

    fn signature(&self) -> Result<&Signature, &'static str> {
        self.signature.as_ref().map_err(|reason| *reason)
    }

    fn topology(&self) -> Result<Topology> {
        Ok(self.graph.topology())
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for CpuCapturedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU recording of {} nodes", self.graph.nodes.len())
    }
}

/// The graph that an executable runs.
enum Runs {
    /// A single graph, permanently.
    Own(Arc<Graph>),
    /// The commands of a recording, which others keep; until they are replaced.
    Borrowed(Mutex<(Result<Signature, &'static str>, Weak<Graph>)>),
}

/// An executable, and the stream to which it belongs. A replay in flight keeps its graph alive, not this.
pub(super) struct CpuGraphExec {
    runs: Runs,
    nodes: usize,
    bytes: u64,
    pub(super) stream: Arc<Shared>,
}

impl CpuGraphExec {
    pub(super) fn new(graph: Graph, stream: Arc<Shared>) -> Self {
        let (nodes, bytes) = (graph.count(), graph.bytes());
        Self { runs: Runs::Own(Arc::new(graph)), nodes, bytes, stream }
    }

    pub(super) fn of(recording: &CpuCapturedGraph) -> Self {
        let CpuCapturedGraph { graph, signature, stream } = recording;
        let runs = Runs::Borrowed(Mutex::new((signature.clone(), Arc::downgrade(graph))));
        Self { runs, nodes: graph.count(), bytes: graph.bytes(), stream: Arc::clone(stream) }
    }

    /// Returns the graph that a replay currently runs.
    pub(super) fn graph(&self) -> Option<Arc<Graph>> {
        match &self.runs {
            Runs::Own(graph) => Some(Arc::clone(graph)),
            Runs::Borrowed(current) => current.lock().unwrap_or_else(PoisonError::into_inner).1.upgrade(),
        }
    }

    /// Replaces the commands, if the topologies agree.
    pub(super) fn update(&self, recording: &CpuCapturedGraph) -> Result<(), &'static str> {
        let Runs::Borrowed(current) = &self.runs else { return Err("it was made for one recording") };
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if recording.signature.clone()? != current.0.clone()? {
            return Err("the topologies differ");
        }
        current.1 = Arc::downgrade(&recording.graph);
        Ok(())
    }
}

impl GraphExec for CpuGraphExec {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn topology(&self) -> Result<Topology> {
        let graph = self.graph().ok_or_else(|| Error::Config {
            what: "the topology of an executable".into(),
            reason: "the recording that it ran last is gone".into(),
        })?;
        Ok(graph.topology())
    }

    fn runs(&self) -> Option<u64> {
        match self.runs {
            Runs::Own(_) => None,
            Runs::Borrowed(_) => Some(self.graph()?.id),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuGraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU graph of {} nodes", self.nodes)
    }
}
