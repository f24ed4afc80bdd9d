//! The graph tree as a value.

use crate::RecordingId;

/// The graph tree of a runtime at one moment.
///
/// It is a graph rather than a tree: a recording is found by the state of the pool that it starts from, so
/// ways that meet in equal states share what follows. [`Display`](std::fmt::Display) prints it, shared parts
/// once; [`to_dot`](Self::to_dot) and [`to_json`](Self::to_json) give it to other tools.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphTree {
    /// The device's name, such as `cpu`.
    pub device: String,
    /// Graph objects whose recordings ran, in the order in which they were made.
    pub functions: Vec<TreeFunction>,
    /// Recordings, in the order in which they were made.
    pub nodes: Vec<TreeNode>,
    /// States of the pool at the nodes' ends. The first is the empty one; the others come in the order of
    /// the nodes.
    pub states: Vec<TreeState>,
    /// Segments that ran in warm-up and have no recording yet, in the order in which they were met first.
    pub waiting: Vec<TreeWaiting>,
    /// Bytes of the pool that were ever in use at once, also by what is no recording: a warm-up does not know
    /// yet which blocks leave the call.
    pub pool_bytes: u64,
    /// The same for the arena of results, which outlive their call.
    pub result_bytes: u64,
    /// The same for the arena of what is made outside segments.
    pub eager_bytes: u64,
    /// How many executables there are.
    pub executables: usize,
    /// Bytes of all executables, as far as the device knows.
    pub executable_bytes: u64,
    /// Bytes that they would take besides if each recording had its own.
    pub shared_bytes: u64,
}

/// A graph object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeFunction {
    /// The function's name.
    pub name: String,
    /// Ids of the recordings that its calls began with.
    pub roots: Vec<RecordingId>,
}

/// A segment, with shapes and host values of its own, that is not recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeWaiting {
    /// The function whose call ran it last.
    pub function: String,
    /// What is to be recorded.
    pub segment: TreeSegment,
    /// Why it was not when it ran last: a [`WaitReason`](crate::WaitReason) as text.
    pub why: String,
    /// How often it ran in warm-up since it was recorded last.
    pub warmups: u64,
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeNode {
    /// Its number in events; never given twice.
    pub id: RecordingId,
    /// The function in whose call it was recorded.
    pub function: String,
    /// The `#[dims]` symbols of that call with their sizes, padded to their buckets. A recording that depends on
    /// none of them serves calls of other sizes, too.
    pub sizes: Vec<(String, usize)>,
    /// What it is a recording of.
    pub segment: TreeSegment,
    /// The node that it was recorded after; `None` when it came first in a call, or after something that
    /// ran without a recording.
    pub parent: Option<RecordingId>,
    /// All nodes that were seen to come right before it, in order.
    pub parents: Vec<RecordingId>,
    /// All nodes that were seen to come right after it, in the order of the first time.
    pub children: Vec<RecordingId>,
    /// Whether a call was seen to begin with it.
    pub root: bool,
    /// Whether it was seen to follow something that ran without a recording, such as a warm-up.
    pub after_eager: bool,
    /// Index in [`GraphTree::states`]: what must be alive in the pool, and where, for it to be replayed.
    pub entry: usize,
    /// Index in [`GraphTree::states`]: what is alive after it.
    pub exit: usize,
    /// Outputs of the nodes before it, on the way that it was recorded, that are alive at its entry.
    pub alive: Vec<OutputId>,
    /// Outputs of the 64 nodes before it, on the way that it was recorded, that were in the pool and are gone.
    pub dead: Vec<OutputId>,
    /// What else is alive at its entry: results of eager regions, mostly. Each is what made it.
    pub alive_others: Vec<String>,
    /// What it gives, in order; compound values are taken apart.
    pub outputs: Vec<TreeOutput>,
    /// Names of the operations of its body, in order. One may be several kernels, or none.
    pub operations: Vec<String>,
    /// Nodes of its executable: kernels, copies, fills. See [`Runtime::topology`](crate::Runtime::topology).
    pub kernels: usize,
    /// How many calls found it and replayed it.
    pub hits: u64,
    /// Bytes of the pool, from its start, that its body and everything alive meanwhile needed.
    pub pool_bytes: u64,
    /// Bytes of its executable, as far as the device knows; 0 where it shares that of an earlier node.
    pub executable_bytes: u64,
    /// The nodes that run by the same executable, which is updated for each: see
    /// [`Runtime::share_executables`](crate::Runtime::share_executables).
    pub shares_with: Vec<RecordingId>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeSegment {
    /// The function that the segment stands in, which may be another one's `#[piecewise]` part.
    pub function: String,
    /// Index in that function's [`Plan::items`](crate::Plan::items).
    pub index: usize,
    /// The file.
    pub file: String,
    /// First line.
    pub first_line: u32,
    /// Last line.
    pub last_line: u32,
    /// It is a whole call, recorded in full mode; the place is that of its first part.
    pub whole_call: bool,
}

/// An output of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OutputId {
    /// The recording.
    pub recording: RecordingId,
    /// Index in its outputs.
    pub output: usize,
}

/// What a node gives.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeOutput {
    /// Where it lies.
    pub place: OutputPlace,
    /// Its element type; `None` for a host value.
    pub dtype: Option<String>,
    /// Its sizes, outermost first; none for a host value.
    pub shape: Vec<usize>,
}

/// Where an output lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OutputPlace {
    /// A block of the pool: the next call uses its memory again.
    Pool(TreeBlock),
    /// A block of the arena of results: it leaves the call.
    Result(TreeBlock),
    /// A view of the live-in tensor of that index.
    LiveIn(usize),
    /// A view of a parameter or of state.
    Owned,
    /// A host value, which every replay gives as it was recorded.
    Host(String),
}

/// A block of an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeBlock {
    /// Where it starts, in bytes from the arena's start.
    pub offset: u64,
    /// Its bytes; outputs that share a block are views of it.
    pub bytes: u64,
    /// The operation that made it.
    pub producer: String,
}

/// A state of the pool: what is alive, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeState {
    /// Live blocks as (offset, bytes), by offset; rounded up to 256 bytes.
    pub blocks: Vec<(u64, u64)>,
}

impl TreeState {
    /// Bytes alive.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl GraphTree {
    pub(crate) fn new(device: String) -> Self {
        Self {
            device,
            functions: Vec::new(),
            nodes: Vec::new(),
            states: vec![TreeState { blocks: Vec::new() }],
            waiting: Vec::new(),
            pool_bytes: 0,
            result_bytes: 0,
            eager_bytes: 0,
            executables: 0,
            executable_bytes: 0,
            shared_bytes: 0,
        }
    }

    /// The node of that id.
    pub fn node(&self, id: impl Into<RecordingId>) -> Option<&TreeNode> {
        let id = id.into();
        self.nodes.binary_search_by_key(&id, |n| n.id).ok().map(|at| &self.nodes[at])
    }

    /// Number of nodes that calls were seen to begin with.
    pub fn roots(&self) -> usize {
        self.nodes.iter().filter(|n| n.root).count()
    }

    /// Bytes of the pool that the recordings need. Ways through the tree lie over each other: it is what the
    /// largest of them needs, not their sum.
    pub fn needed_pool_bytes(&self) -> u64 {
        self.nodes.iter().map(|n| n.pool_bytes).max().unwrap_or(0)
    }

    /// As Graphviz: `dot -Tsvg`. Nodes are recordings, arrows what followed what.
    pub fn to_dot(&self) -> String {
        super::dot::tree(self)
    }

    /// As one JSON object on one line, its keys the names of the fields.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn to_json(&self) -> String {
        super::json(self)
    }
}
