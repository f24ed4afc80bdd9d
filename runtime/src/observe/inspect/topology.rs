//! A recording as its device sees it.

use std::fmt;

/// The nodes of an executable, and their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Topology {
    /// The nodes, in the order in which the device lists them.
    pub nodes: Vec<GraphNode>,
    /// The edges: indices in `nodes`.
    pub edges: Vec<GraphEdge>,
}

/// The kind of a node.
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
    /// Does nothing: joins or splits edges.
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
    /// Runs another graph conditionally or repeatedly, depending on a value on the device.
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
    /// Its kind.
    pub kind: NodeKind,
    /// The name of the kernel or operation; empty if the device does not report it.
    pub name: String,
    /// The blocks of a kernel, in x, y and z; `None` for a node that is not a GPU kernel.
    pub grid: Option<[u32; 3]>,
    /// The threads of each block, in x, y and z.
    pub block: Option<[u32; 3]>,
    /// The dynamic shared memory of each block, in bytes.
    pub shared_bytes: u32,
    /// The number of bytes that it writes, if the device reports it.
    pub bytes: Option<u64>,
    /// The bodies of a conditional node, of which a value on the device selects one.
    pub bodies: Vec<Topology>,
}

impl GraphNode {
    pub(crate) fn new(kind: NodeKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            grid: None,
            block: None,
            shared_bytes: 0,
            bytes: None,
            bodies: Vec::new(),
        }
    }
}

/// The order that an edge imposes on its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EdgeKind {
    /// The end starts when the start has ended.
    Full,
    /// The end, which is a kernel, is started while the start runs, and waits by itself.
    Programmatic,
    /// A kind that this version does not know, by the driver's number.
    Other(u8),
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphEdge {
    /// The index of the node that comes first.
    pub from: usize,
    /// The index of the node that waits.
    pub to: usize,
    /// The kind of the edge.
    pub kind: EdgeKind,
    /// The point of the first node at which the edge starts, in the driver's numbering; 0 is its end.
    pub from_port: u8,
    /// The part of the second node that waits, in the driver's numbering; 0 is all of it.
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

    /// Returns the number of nodes of that kind, with those in bodies.
    pub fn count(&self, kind: NodeKind) -> usize {
        let of = |n: &GraphNode| {
            usize::from(n.kind == kind) + n.bodies.iter().map(|body| body.count(kind)).sum::<usize>()
        };
        self.nodes.iter().map(of).sum()
    }

    /// Writes the nodes as lines, and below each the bodies that it has.
    fn write_nodes(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        for (index, node) in self.nodes.iter().enumerate() {
            write!(f, "{:indent$}{index}: {node}", "", indent = 2 + 4 * depth)?;
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
            if after.is_empty() {
                writeln!(f)?
            } else {
                writeln!(f, "; after {}", after.join(", "))?
            }
            for (number, body) in node.bodies.iter().enumerate() {
                writeln!(f, "{:indent$}body {number}", "", indent = 4 + 4 * depth)?;
                body.write_nodes(f, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns Graphviz, for `dot -Tsvg`.
    pub fn to_dot(&self) -> String {
        super::dot::topology(self)
    }

    /// Returns one JSON object on one line, with the names of the fields as keys.
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
        self.write_nodes(f, 0)
    }
}
