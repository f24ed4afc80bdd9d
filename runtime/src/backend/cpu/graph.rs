//! What a capture leaves: launches with their addresses.

use std::{any::Any, fmt, sync::Arc};

use super::{order::Hazards, stream::Shared};
use crate::{
    Result,
    backend::{Executable, Launch, Op, SharedMemory},
    inspect::{GraphEdge, GraphNode, NodeKind, Topology},
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
}

impl Node {
    fn shown(&self) -> GraphNode {
        let (kind, name) = match self {
            Self::Launch(launch) => match launch.op {
                Op::Copy => (NodeKind::Copy, launch.op.name()),
                Op::Fill(_) => (NodeKind::Fill, launch.op.name()),
                _ => (NodeKind::Kernel, launch.op.name()),
            },
            Self::Poison { .. } => (NodeKind::Fill, "poison"),
        };
        let bytes = match self {
            Self::Launch(launch) => {
                launch.outputs.iter().map(|v| v.layout.count() * v.dtype.size()).sum::<usize>() as u64
            }
            Self::Poison { bytes, .. } => *bytes,
        };
        GraphNode { bytes: Some(bytes), ..GraphNode::new(kind, name) }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Launch(launch) => launch.op.name(),
            Self::Poison { .. } => "the poison of freed memory",
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
        }
    }
}

/// The nodes of a recording, in their order, and the memory that they need.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// In test mode: nodes run in any order that these allow.
    pub(super) hazards: Option<Hazards>,
    _retained: Vec<SharedMemory>,
}

/// A graph and the stream that it belongs to. A replay under way keeps the graph, not this.
pub(super) struct CpuExecutable {
    pub(super) graph: Arc<Graph>,
    pub(super) stream: Arc<Shared>,
}

impl CpuExecutable {
    pub(super) fn new(
        nodes: Vec<Node>,
        shuffle: bool,
        retained: Vec<SharedMemory>,
        stream: Arc<Shared>,
    ) -> Self {
        let hazards = shuffle.then(|| Hazards::of(&nodes));
        Self { graph: Arc::new(Graph { nodes, hazards, _retained: retained }), stream }
    }
}

impl Executable for CpuExecutable {
    fn nodes(&self) -> usize {
        self.graph.nodes.len()
    }

    fn bytes(&self) -> u64 {
        (size_of::<Graph>() + self.graph.nodes.capacity() * size_of::<Node>()) as u64
    }

    /// Every command, and the direct dependencies between them. In test mode any order that they allow
    /// may run; otherwise commands run in the order in which they were recorded.
    fn topology(&self) -> Result<Topology> {
        let nodes = self.graph.nodes.iter().map(Node::shown).collect();
        let edges = match &self.graph.hazards {
            Some(hazards) => hazards.direct(),
            None => Hazards::of(&self.graph.nodes).direct(),
        };
        Ok(Topology::new(nodes, edges.into_iter().map(|(from, to)| GraphEdge::full(from, to)).collect()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU graph of {} nodes", self.graph.nodes.len())
    }
}
