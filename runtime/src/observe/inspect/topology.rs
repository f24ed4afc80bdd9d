//! A recording as its device has it.

use std::fmt;

/// The nodes of an executable and what waits for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Topology {
    /// The nodes, in the order in which the device lists them.
    pub nodes: Vec<GraphNode>,
    /// The edges: indices in `nodes`.
    pub edges: Vec<GraphEdge>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum NodeKind {
    /// Runs a kernel.
    Kernel,
    /// Copies memory.
    Copy,
    /// Fills memory with a value.
    Fill,
    /// Calls a function of the host.
    Host,
    /// Runs another graph.
    Graph,
    /// Nothing: joins or splits edges.
    Empty,
    /// Waits for an event.
    WaitEvent,
    /// Records an event.
    RecordEvent,
    /// Signals a semaphore of another API.
    SignalSemaphore,
    /// Waits for a semaphore of another API.
    WaitSemaphore,
    /// Allocates memory.
    Allocate,
    /// Frees memory.
    Free,
    /// Several operations on memory words.
    BatchMemory,
    /// Runs another graph if, or while, a value on the device says so.
    Conditional,
    /// A kind that this version does not know, by the driver's number.
    Other(i32),
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Host => "host",
            Self::Graph => "graph",
            Self::Empty => "empty",
            Self::WaitEvent => "wait for event",
            Self::RecordEvent => "record event",
            Self::SignalSemaphore => "signal semaphore",
            Self::WaitSemaphore => "wait for semaphore",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::BatchMemory => "batch of memory operations",
            Self::Conditional => "conditional",
            Self::Other(number) => return write!(f, "kind {number}"),
        };
        f.write_str(name)
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphNode {
    /// What it does.
    pub kind: NodeKind,
    /// The kernel's or operation's name; empty where the device tells none.
    pub name: String,
    /// Blocks of a kernel, in x, y and z; `None` for what is no kernel of a GPU.
    pub grid: Option<[u32; 3]>,
    /// Threads of each block, in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory of each block, in bytes.
    pub shared_bytes: u32,
    /// Bytes that it writes, where the device tells.
    pub bytes: Option<u64>,
}

impl GraphNode {
    pub(crate) fn new(kind: NodeKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), grid: None, block: None, shared_bytes: 0, bytes: None }
    }
}

/// How an edge orders its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EdgeKind {
    /// The end starts when the start has ended.
    Full,
    /// The end, a kernel, is brought up while the start runs, and waits by itself.
    Programmatic,
    /// A kind that this version does not know, by the driver's number.
    Other(u8),
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphEdge {
    /// Index of the node that comes first.
    pub from: usize,
    /// Index of the node that waits.
    pub to: usize,
    /// How it waits.
    pub kind: EdgeKind,
    /// From what point of the first node on, as the driver numbers them; 0 is its end.
    pub from_port: u8,
    /// What of the second node waits, as the driver numbers it; 0 is all of it.
    pub to_port: u8,
}

impl GraphEdge {
    pub(crate) fn full(from: usize, to: usize) -> Self {
        Self { from, to, kind: EdgeKind::Full, from_port: 0, to_port: 0 }
    }
}

impl Topology {
    pub(crate) fn new(nodes: Vec<GraphNode>, mut edges: Vec<GraphEdge>) -> Self {
        edges.sort_unstable_by_key(|e| (e.from, e.to));
        Self { nodes, edges }
    }

    /// Number of nodes of that kind.
    pub fn count(&self, kind: NodeKind) -> usize {
        self.nodes.iter().filter(|n| n.kind == kind).count()
    }

    /// As Graphviz: `dot -Tsvg`.
    pub fn to_dot(&self) -> String {
        super::dot::topology(self)
    }

    /// As one JSON object on one line, its keys the names of the fields.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn to_json(&self) -> String {
        super::json(self)
    }
}

impl fmt::Display for GraphNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if let (Some([x, y, z]), Some([a, b, c])) = (self.grid, self.block) {
            write!(f, ", grid {x}x{y}x{z}, block {a}x{b}x{c}")?;
        }
        if self.shared_bytes > 0 {
            write!(f, ", shared {} B", self.shared_bytes)?;
        }
        match self.bytes {
            Some(bytes) => write!(f, ", writes {bytes} B"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (nodes, edges) = (self.nodes.len(), self.edges.len());
        writeln!(f, "{nodes} node{}, {edges} edge{}", plural(nodes), plural(edges))?;
        for (index, node) in self.nodes.iter().enumerate() {
            write!(f, "  {index}: {node}")?;
            let after: Vec<String> = self
                .edges
                .iter()
                .filter(|e| e.to == index)
                .map(|e| match e.kind {
                    EdgeKind::Full => e.from.to_string(),
                    EdgeKind::Programmatic => format!("{} (programmatic, port {})", e.from, e.from_port),
                    EdgeKind::Other(kind) => format!("{} (edge kind {kind})", e.from),
                })
                .collect();
            if after.is_empty() { writeln!(f)? } else { writeln!(f, "; after {}", after.join(", "))? }
        }
        Ok(())
    }
}
