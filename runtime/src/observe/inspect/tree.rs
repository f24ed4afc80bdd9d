//! A snapshot of the graph tree.

use super::PassReport;
use crate::{Numerics, RecordingId};

/// The graph tree of a runtime at one moment.
///
/// It is a graph rather than a tree: a recording is found by the pool state in which it starts, so paths that
/// meet in equal states share what follows. [`Display`](std::fmt::Display) prints it, with shared parts once;
/// [`to_dot`](Self::to_dot) and [`to_json`](Self::to_json) export it to other tools.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphTree {
    /// The device's name, such as `cpu`.
    pub device: String,
    /// Graph objects whose recordings ran, in the order of their creation.
    pub functions: Vec<TreeFunction>,
    /// Recordings, in the order in which they were made.
    pub recordings: Vec<TreeRecording>,
    /// The states of the pool at the ends of recordings. The first is the empty one; the others are in the order
    /// of the recordings.
    pub states: Vec<TreeState>,
    /// Segments that ran in warm-up and have no recording yet, in the order of their first use.
    pub waiting: Vec<TreeWaiting>,
    /// The high-water mark of the pool in bytes, including memory that is not part of a recording: a warm-up
    /// does not know yet which blocks leave the call.
    pub pool_bytes: u64,
    /// The high-water mark of the arena of results, which outlive their call.
    pub result_bytes: u64,
    /// The high-water mark of the arena of tensors made outside segments.
    pub eager_bytes: u64,
    /// The number of executables.
    pub executables: usize,
    /// The size of all executables in bytes, as far as the device knows.
    pub executable_bytes: u64,
    /// The bytes that they would need in addition if each recording had its own.
    pub shared_bytes: u64,
}

/// A graph object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeFunction {
    /// The function's name.
    pub name: String,
    /// The ids of the recordings with which its calls began.
    pub roots: Vec<RecordingId>,
}

/// A segment, with its own shapes and host values, that is not recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeWaiting {
    /// The function whose call last ran it.
    pub function: String,
    /// The segment to be recorded.
    pub segment: TreeSegment,
    /// The reason why it was not recorded when it last ran: a [`WaitReason`](crate::WaitReason) as text.
    pub reason: String,
    /// The number of warm-ups since its last recording.
    pub warmups: u64,
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeRecording {
    /// Its id in events, which is never reused.
    pub id: RecordingId,
    /// The function in whose call it was recorded.
    pub function: String,
    /// The switches of the numerics in that call.
    pub numerics: Numerics,
    /// The `#[dims]` symbols of that call with their sizes, padded to their buckets. A recording that depends
    /// on none of them serves calls of other sizes as well.
    pub sizes: Vec<(String, usize)>,
    /// The recorded segment.
    pub segment: TreeSegment,
    /// The recording after which it was recorded; `None` if it came first in a call, or after something that ran
    /// without a recording.
    pub parent: Option<RecordingId>,
    /// All recordings that were observed to come directly before it, in order.
    pub parents: Vec<RecordingId>,
    /// All recordings that were observed to come directly after it, in the order of first occurrence.
    pub children: Vec<RecordingId>,
    /// Set if a call was observed to begin with it.
    pub root: bool,
    /// Set if it was observed to follow something that ran without a recording, such as a warm-up.
    pub after_eager: bool,
    /// The index in [`GraphTree::states`] of the blocks that must be live in the pool for it to be replayed.
    pub entry: usize,
    /// The index in [`GraphTree::states`] of the blocks that are live after it.
    pub exit: usize,
    /// Outputs of preceding recordings, on the path on which it was recorded, that are alive at its entry.
    pub alive: Vec<OutputId>,
    /// Outputs of the 64 preceding recordings, on the path on which it was recorded, that were in the pool and
    /// have been freed.
    pub dead: Vec<OutputId>,
    /// The producers of other blocks that are live at its entry, mostly results of eager regions.
    pub alive_others: Vec<String>,
    /// Its outputs, in order; compound values are split into their parts.
    pub outputs: Vec<TreeOutput>,
    /// The names of the operations in its body, in order. One may be several kernels, or none. Control flow on the device
    /// is among them: `while {`, `cond {` or `switch {`, `body:` before each body, and `}`.
    pub operations: Vec<String>,
    /// The effects of the passes on its operations: see [`Runtime::set_passes`](crate::Runtime::set_passes).
    pub passes: Vec<PassReport>,
    /// The number of nodes in its executable: kernels, copies, fills. See
    /// [`Runtime::topology`](crate::Runtime::topology).
    pub kernels: usize,
    /// The number of calls that found and replayed it.
    pub hits: u64,
    /// The bytes of the pool, from its start, that its body and everything live meanwhile needed.
    pub pool_bytes: u64,
    /// The size of its executable in bytes, as far as the device knows; 0 if it shares that of an earlier
    /// recording.
    pub executable_bytes: u64,
    /// The recordings that use the same executable, which is updated for each: see
    /// [`Runtime::share_executables`](crate::Runtime::share_executables).
    pub shares_with: Vec<RecordingId>,
}

/// A position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeSegment {
    /// The function that contains the segment, which may be called by another one with `#[piecewise]`.
    pub function: String,
    /// The index in that function's [`Plan::items`](crate::Plan::items).
    pub index: usize,
    /// The file.
    pub file: String,
    /// First line.
    pub first_line: u32,
    /// Last line.
    pub last_line: u32,
    /// Set for a whole call, recorded in full mode; the position is that of its first part.
    pub whole_call: bool,
}

/// An output of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OutputId {
    /// The recording.
    pub recording: RecordingId,
    /// The index among its outputs.
    pub output: usize,
}

/// An output of a recording.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeOutput {
    /// The location of its memory.
    pub place: OutputPlace,
    /// Its element type; `None` for a host value.
    pub dtype: Option<String>,
    /// Its sizes, outermost first; none for a host value.
    pub shape: Vec<usize>,
}

/// The location of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OutputPlace {
    /// A block of the pool: the next call reuses its memory.
    Pool(TreeBlock),
    /// A block of the arena of results, because it leaves the call.
    Result(TreeBlock),
    /// A view of the live-in tensor with that index.
    LiveIn(usize),
    /// A view of a parameter or of state.
    Owned,
    /// A host value, which every replay returns as it was recorded.
    Host(String),
}

/// A block of an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeBlock {
    /// The offset from the arena's start, in bytes.
    pub offset: u64,
    /// Its size in bytes; outputs that share a block are views of it.
    pub bytes: u64,
    /// The operation that produced it.
    pub producer: String,
}

/// A state of the pool: its live blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TreeState {
    /// Live blocks as (offset, bytes), by offset; rounded up to 256 bytes.
    pub blocks: Vec<(u64, u64)>,
}

impl TreeState {
    /// Returns the number of live bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl GraphTree {
    pub(crate) fn new(device: String) -> Self {
        Self {
            device,
            functions: Vec::new(),
            recordings: Vec::new(),
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

    /// Returns the recording with that id.
    pub fn recording(&self, id: impl Into<RecordingId>) -> Option<&TreeRecording> {
        let id = id.into();
        self.recordings.binary_search_by_key(&id, |n| n.id).ok().map(|at| &self.recordings[at])
    }

    /// Returns the number of recordings with which calls were observed to begin.
    pub fn roots(&self) -> usize {
        self.recordings.iter().filter(|n| n.root).count()
    }

    /// Returns the bytes of the pool that the recordings need. Paths through the tree overlap in memory, so
    /// this is the need of the largest of them, not their sum.
    pub fn needed_pool_bytes(&self) -> u64 {
        self.recordings.iter().map(|n| n.pool_bytes).max().unwrap_or(0)
    }

    /// Returns Graphviz, for `dot -Tsvg`. Nodes are recordings, and arrows point to their followers.
    pub fn to_dot(&self) -> String {
        super::dot::tree(self)
    }

    /// Returns one JSON object on one line, with the names of the fields as keys.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn to_json(&self) -> String {
        super::json(self)
    }
}
