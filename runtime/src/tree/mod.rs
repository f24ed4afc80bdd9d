//! The graph tree: recordings, found by the state in which they start and by what they use.

use std::{any::TypeId, collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

use crate::{
    Numerics,
    backend::{GraphExec, SharedMemory},
    base::{plan::Site, recording_id::RecordingId},
    memory::{Alive, Extent, Ordinal, Placement, Tables, pool::StateId},
    observe::{
        inspect::{PassReport, Topology},
        log::Log,
    },
    value::{dim::RawDim, key::RecordedOperand, owned::OwnerId, raw::RawTensor},
};

mod alias;
mod bounds;
mod edge;
mod evict;
mod exec_reuse;
pub(crate) mod groups;
mod links;
mod lookup;
mod reported;
mod table;

pub(crate) use crate::{memory::GroupId, value::owned::Caller};
pub(crate) use alias::{Alias, Aliases};
pub(crate) use bounds::ResultBounds;
pub(crate) use edge::{CopiedInput, MovedOperand, Positions};
use edge::{EdgeIndex, EdgeState};
use evict::Holders;
use exec_reuse::Shares;
pub(crate) use exec_reuse::{CallSite, ExecReuse, ExecTotals, ReuseCandidate};
use groups::Groups;
pub(crate) use groups::{Group, GroupKey, Release, Waiting};
use links::Before;
pub(crate) use links::Links;
pub(crate) use lookup::{LookupKey, recorded};
pub(crate) use table::RecordingIndex;
use table::RecordingTable;

/// The identity of what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A segment: the type of its body, which is one per monomorphisation.
    Segment(TypeId),
    /// A whole call of that graph object.
    Full(OwnerId),
}

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOp {
    pub(crate) name: &'static str,
    pub(crate) fingerprint: u64,
    /// Set if it is not an operation, but the structure around others.
    pub(crate) mark: Option<ControlMark>,
}

/// A place in the structure of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlMark {
    /// A conditional node begins.
    Begin,
    /// One of its bodies begins.
    Body,
    /// The node ends.
    End,
}

/// A block that a recording leaves to its outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputBlock {
    pub(crate) addr: u64,
    pub(crate) bytes: u64,
    pub(crate) placement: Placement,
    /// The ordinal of the group's allocation, if it is one.
    pub(crate) ordinal: Option<Ordinal>,
    pub(crate) producer: &'static str,
    /// The number of outputs in it, which are freed together.
    pub(crate) refs: u32,
}

/// An output as it was recorded.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// In the recording's block of that index.
    Own(u32, RawTensor),
    /// A view of the live-in tensor of that index, with its index in [`Recording::places`] if it is in an arena.
    LiveIn(u32, Option<u32>, RawTensor),
    /// A view of owned memory.
    Owned(SharedMemory, RawTensor),
    Word(u64),
    Text(Arc<str>),
    Size(RawDim),
}

/// A live-in in an arena, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveInPlace {
    /// Index among the tensors of the key.
    pub(crate) tensor: u32,
    /// Index among its device operands.
    pub(crate) operand: u32,
    pub(crate) addr: u64,
    /// From its first to its last element.
    pub(crate) bytes: u64,
}

/// The memory of the pool and the results arena that a recording needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// The maximum size of its own blocks, in bytes.
    pub(crate) pool_peak: u64,
    /// The memory that must be committed when it is replayed: of the pool, to the end of the last block that
    /// was live meanwhile, of any owner; of the results arena, to the end of its last block there.
    pub(crate) extent: Extent,
}

/// The results of a recording were still held when it ran again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldResults {
    /// The last step in which they were.
    pub(crate) step: u64,
    /// The address to which the first of them was moved then.
    pub(crate) moved_to: Option<u64>,
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
    /// The caller in whose call it was recorded.
    pub(crate) caller: Caller,
    /// The switches of the numerics with which it was recorded, which its key contains.
    pub(crate) numerics: Numerics,
    /// The `#[dims]` symbols of that call, with their sizes.
    pub(crate) sizes: Box<[(&'static str, usize)]>,
    pub(crate) group: GroupId,
    pub(crate) parent: Option<RecordingIndex>,
    pub(crate) entry: StateId,
    pub(crate) exit: StateId,
    pub(crate) shape: Box<[u64]>,
    /// As in the key, except that a copied live-in has no address.
    pub(crate) operands: Box<[RecordedOperand]>,
    pub(crate) copied: Box<[CopiedInput]>,
    /// The addresses of its live-ins in arenas when it was recorded.
    pub(crate) places: Box<[LiveInPlace]>,
    /// The overlap of its live-ins, if its body queried it: it is a recording of that answer.
    pub(crate) aliases: Option<Box<[Alias]>>,
    pub(crate) exec: Option<Arc<dyn GraphExec>>,
    /// Set if it was recorded so that others can run through the same executable; they do if it is the same.
    pub(crate) sharing: Option<ExecReuse>,
    pub(crate) blocks: Vec<OutputBlock>,
    pub(crate) outputs: Vec<Stored>,
    /// The ids of owned memory to which it refers.
    pub(crate) owned: Vec<OwnerId>,
    /// State that it writes.
    pub(crate) writes: Vec<(OwnerId, SharedMemory)>,
    /// The blocks that were live in the pool when it was recorded.
    pub(crate) alive: Alive,
    /// The effects of passes on it.
    pub(crate) passes: Box<[PassReport]>,
    /// The largest difference that passes may have caused between its results and those of its body; `None` if no bit differs.
    pub(crate) bounds: Option<Arc<ResultBounds>>,
    pub(crate) usage: Usage,
    /// The number of runs; the first was directly after its recording.
    pub(crate) hits: u64,
    pub(crate) likely: Option<RecordingIndex>,
    /// Its links, which the tree maintains.
    pub(crate) links: Links,
    /// Set if its results were held when it ran again, and that was recent.
    pub(crate) held: Option<HeldResults>,
    /// Set if it was observed to follow something that ran without a recording.
    pub(crate) after_eager: bool,
}

/// The beginning of a function's calls.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) caller: Caller,
    pub(super) likely: Option<RecordingIndex>,
    /// Every recording that was observed to come first, in the order of first occurrence.
    pub(super) first: BTreeMap<u64, RecordingIndex>,
}

impl Start {
    /// Returns the recordings that were observed to come first, in the order of first occurrence.
    pub(crate) fn first(&self) -> impl Iterator<Item = RecordingIndex> {
        self.first.values().copied()
    }
}

impl Recording {
    /// Returns the id by which users know it. Ids are never reused.
    pub(crate) fn id(&self) -> RecordingId {
        self.links.id
    }

    /// Returns the address of a device operand, as it is in its key.
    pub(crate) fn addr(&self, operand: u32) -> Option<u64> {
        self.operands[operand as usize].addr()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    recordings: RecordingTable,
    /// The index of each recording.
    indices: BTreeMap<RecordingId, RecordingIndex>,
    next_id: RecordingId,
    /// Numbers observations in the order of first occurrence.
    sequence: u64,
    index: FxHashMap<u64, SmallVec<[RecordingIndex; 2]>>,
    /// Like `index`, for any addresses of live-ins in arenas.
    anywhere: FxHashMap<u64, SmallVec<[RecordingIndex; 2]>>,
    groups: Groups,
    edges: Slab<EdgeState>,
    edge_index: FxHashMap<u64, SmallVec<[EdgeIndex; 1]>>,
    any_skipped: bool,
    /// The objects to be evicted with owned memory or a graph object, by its id.
    holders: FxHashMap<OwnerId, Holders>,
    /// The number of live-ins that recordings copy.
    copied: usize,
    /// The beginning of each function's calls, by its id.
    roots: FxHashMap<OwnerId, Start>,
    cursor: Cursor,
    caller: Caller,
    shares: Shares,
}

/// The position of the running call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cursor {
    /// At its start.
    #[default]
    Start,
    /// After that recording.
    At(RecordingIndex),
    /// Off the recorded path: something ran without a recording since the call began or a recording ran.
    OffPath,
}

impl Tree {
    /// Forgets everything; ids continue.
    pub(crate) fn clear(&mut self, log: &mut Log) {
        self.evict(self.all(), log);
        let (shares, next_id) = (self.shares.emptied(), self.next_id);
        *self = Self { shares, next_id, ..Self::default() };
    }

    /// Goes to a function's root.
    pub(crate) fn enter(&mut self, caller: Caller) {
        self.cursor = Cursor::Start;
        self.caller = caller;
        self.groups.begin_call();
    }

    /// Returns the caller that is running, or ran last.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    pub(crate) fn len(&self) -> usize {
        self.recordings.len()
    }

    #[inline]
    pub(crate) fn recording(&self, at: RecordingIndex) -> Option<&Recording> {
        self.recordings.get(at)
    }

    pub(crate) fn recordings(&self) -> impl Iterator<Item = &Recording> {
        self.recordings.iter()
    }

    /// Returns the recordings with their indices, in the order of recording.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = (RecordingIndex, &Recording)> {
        self.indices.values().filter_map(|&at| Some((at, self.recording(at)?)))
    }

    /// Returns the recording with that id, if it still exists.
    pub(crate) fn by_id(&self, id: RecordingId) -> Option<&Recording> {
        self.recording(*self.indices.get(&id)?)
    }

    /// Returns the id of a recording; if there is none, the next id.
    pub(crate) fn id(&self, at: RecordingIndex) -> RecordingId {
        self.recording(at).map_or(self.next_id, Recording::id)
    }

    /// Returns the number of recordings, and the bytes of their executables.
    pub(crate) fn recorded(&self) -> (u64, u64) {
        (self.len() as u64, self.executables().bytes)
    }

    /// Returns the memory of the arenas that must be committed for its recordings.
    pub(crate) fn extent(&self) -> Extent {
        self.recordings().fold(Extent::default(), |extent, recording| extent.max(recording.usage.extent))
    }

    /// Returns a recording as the device sees it; `None` if there is none with that id. A recording without
    /// kernels has no nodes.
    pub(crate) fn topology(&self, id: RecordingId) -> Option<crate::Result<Topology>> {
        let recording = self.by_id(id)?;
        Some(match (&recording.sharing, &recording.exec) {
            // Its executable may run another recording now.
            (Some(reuse), _) => reuse.graph.topology(),
            (None, Some(exec)) => exec.topology(),
            (None, None) => Ok(Topology::default()),
        })
    }

    /// Returns the number of entries in its tables.
    pub(crate) fn tables(&self) -> Tables {
        Tables {
            recordings: self.len(),
            places: self.recordings.places(),
            groups: self.groups.len(),
            copied_sets: self.groups.copied_sets(),
            edges: self.edges.len(),
            holders: self.holders.len(),
            starts: self.roots.len(),
            ..Tables::default()
        }
    }

    /// Returns the number of live-ins that recordings copy.
    pub(crate) fn copied_live_ins(&self) -> usize {
        self.copied
    }

    /// Returns the beginnings of calls, one entry for each graph object whose recordings ran.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &Start> {
        self.roots.values()
    }

    /// Notes that the results of a recording were held when it ran again, or no longer are.
    pub(crate) fn note_held(&mut self, at: RecordingIndex, held: Option<HeldResults>) {
        if let Some(recording) = self.recordings.get_mut(at) {
            recording.held = held;
        }
    }

    /// Moves along an edge, and remembers it as the likely one. A path that was also taken last time costs
    /// one comparison.
    pub(crate) fn follow(&mut self, at: RecordingIndex) {
        match self.cursor {
            Cursor::At(from) => {
                if let Some(recording) = self.recordings.get_mut(from)
                    && recording.likely != Some(at)
                {
                    recording.likely = Some(at);
                    self.seen(Before::Recording(from), at);
                }
            }
            Cursor::OffPath => {
                if let Some(recording) = self.recordings.get_mut(at) {
                    recording.after_eager = true;
                }
            }
            Cursor::Start => self.begun_with(at),
        }
        self.cursor = Cursor::At(at);
        if let Some(recording) = self.recordings.get_mut(at) {
            recording.hits += 1;
        }
    }

    /// Returns the parent of the next recording.
    pub(crate) fn cursor(&self) -> Option<RecordingIndex> {
        match self.cursor {
            Cursor::At(at) => Some(at),
            Cursor::Start | Cursor::OffPath => None,
        }
    }

    /// Leaves the recorded path: work ran that no recording covers.
    pub(crate) fn leave_path(&mut self) {
        self.cursor = Cursor::OffPath;
    }

    pub(crate) fn insert(&mut self, mut recording: Recording) -> RecordingIndex {
        let at = self.recordings.next_index();
        let id = self.next_id;
        self.next_id = id.next();
        recording.links.id = id;
        recording.links.parent = recording.parent.and_then(|parent| Some(self.recording(parent)?.id()));
        self.indices.insert(id, at);
        self.index.entry(recording.hash()).or_default().push(at);
        self.anywhere.entry(recording.hash_anywhere()).or_default().push(at);
        let owners = recording.operands.iter().filter_map(|operand| operand.owner());
        let edge = self.edge_for(recording.parent, recording.group, owners);
        self.edges[edge.at()].hang(id, at);
        recording.links.edge = Some(edge);
        self.groups.hang(recording.group, at, &recording.copied);
        for &owner in &recording.owned {
            self.holders.entry(owner).or_default().recordings.insert(at);
        }
        self.copied += recording.copied.len();
        self.shares.add(at, &mut recording);
        self.recordings.insert(recording);
        at
    }
}
