//! The graph tree: recordings, found by where they start and what they use.

use std::{any::TypeId, hash::Hasher, sync::Arc};

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHasher};
use slab::Slab;
use smallvec::SmallVec;

use crate::{
    backend::{GraphExec, SharedMemory},
    base::{plan::Site, recording_id::RecordingId},
    memory::{Alive, Extent, Placement, Tables, pool::StateId},
    observe::{inspect::Topology, log::Log},
    value::{dim::RawDim, key::addr_at, raw::RawTensor},
};

mod edge;
mod evict;
mod exec_reuse;
pub(crate) mod groups;
mod links;
mod reported;

pub(crate) use crate::memory::GroupId;
use edge::EdgeState;
pub(crate) use edge::{COPIED, CopiedInput, Positions, masked};
use evict::Holders;
use exec_reuse::Shares;
pub(crate) use exec_reuse::{CallSite, ExecReuse, ReuseCandidate};
use groups::Groups;
pub(crate) use groups::{Group, Waiting};
use links::Before;
pub(crate) use links::Links;

/// What a recording is a recording of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A segment: the type of its body, which is one per monomorphisation.
    Segment(TypeId),
    /// A whole call, by the id of the graph object.
    Full(u64),
}

/// The function whose call runs: the id of its graph object, and its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
}

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOp {
    pub(crate) name: &'static str,
    pub(crate) fingerprint: u64,
}

/// A block that a recording leaves to its outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputBlock {
    pub(crate) addr: u64,
    pub(crate) bytes: u64,
    pub(crate) placement: Placement,
    /// Which allocation of the group it is, if it is one.
    pub(crate) ordinal: Option<u32>,
    pub(crate) producer: &'static str,
    /// How many outputs show it: they live and die together.
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

/// A live-in in an arena, as a recording bakes it.
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

/// What a recording needs of the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bytes of its own blocks at their most.
    pub(crate) pool_peak: u64,
    /// What must be there when it is replayed: of the pool, to the end of the last block that was alive meanwhile,
    /// whosever; of the results arena, to the end of its last block there.
    pub(crate) extent: Extent,
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
    /// In whose call it was recorded.
    pub(crate) caller: Caller,
    /// The `#[dims]` symbols of that call, with their sizes.
    pub(crate) sizes: Box<[(&'static str, usize)]>,
    pub(crate) group: GroupId,
    pub(crate) parent: Option<usize>,
    pub(crate) entry: StateId,
    pub(crate) exit: StateId,
    pub(crate) shape: Box<[u64]>,
    /// As in the key, [`COPIED`] for the address of a live-in that is copied.
    pub(crate) addrs: Box<[u64]>,
    pub(crate) copied: Box<[CopiedInput]>,
    /// Where its live-ins in arenas lay when it was recorded.
    pub(crate) places: Box<[LiveInPlace]>,
    /// How its live-ins overlapped, if its body asked: it is a recording of that answer.
    pub(crate) aliases: Option<Box<[u64]>>,
    pub(crate) exec: Option<Arc<dyn GraphExec>>,
    /// Recorded so that others can run by the same executable; they do where it is the same.
    pub(crate) sharing: Option<ExecReuse>,
    pub(crate) blocks: Vec<OutputBlock>,
    pub(crate) outputs: Vec<Stored>,
    /// Ids of owned memory that it bakes.
    pub(crate) owned: Vec<u64>,
    /// State that it writes.
    pub(crate) writes: Vec<(u64, SharedMemory)>,
    /// What was alive in the pool when it was recorded.
    pub(crate) alive: Alive,
    pub(crate) usage: Usage,
    /// How often it ran; the first time was right after its recording.
    pub(crate) hits: u64,
    pub(crate) likely: Option<usize>,
    /// What it is tied to; the tree's.
    pub(crate) links: Links,
    /// The step in which its results were last seen held when it ran again, if that was lately.
    pub(crate) crowded: Option<u64>,
    /// Where the first of them went then.
    pub(crate) handed: Option<u64>,
    /// It was seen to follow something that ran without a recording.
    pub(crate) after_eager: bool,
}

/// Where the calls of a function begin.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) caller: Caller,
    pub(super) likely: Option<usize>,
    /// Every recording that was seen to come first, in the order of the first time.
    pub(super) first: BTreeMap<u64, u32>,
}

impl Start {
    /// The recordings that were seen to come first, in the order of the first time.
    pub(crate) fn first(&self) -> impl Iterator<Item = usize> {
        self.first.values().map(|&at| at as usize)
    }
}

impl Recording {
    /// What users know it by. Never given twice.
    pub(crate) fn id(&self) -> RecordingId {
        self.links.id
    }

    /// The address of a device operand, as it is in its key.
    #[inline]
    pub(crate) fn addr(&self, operand: u32) -> u64 {
        addr_at(&self.addrs, operand)
    }

    fn is(&self, identity: Identity, entry: StateId, shape: &[u64], addrs: &[u64]) -> bool {
        self.identity == identity && self.entry == entry && *self.addrs == *addrs && *self.shape == *shape
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Indices are used again: what refers to a recording by its index is tied to it, and goes when it goes.
    recordings: Vec<Option<Recording>>,
    vacant: Vec<u32>,
    live: usize,
    /// Where each recording is.
    indices: BTreeMap<RecordingId, u32>,
    next_id: RecordingId,
    /// Counts what is seen for the first time.
    sequence: u64,
    index: FxHashMap<u64, SmallVec<[u32; 2]>>,
    /// As `index`, wherever live-ins in arenas lie.
    anywhere: FxHashMap<u64, SmallVec<[u32; 2]>>,
    groups: Groups,
    edges: Slab<EdgeState>,
    edge_index: FxHashMap<u64, SmallVec<[u32; 1]>>,
    any_skipped: bool,
    /// What must go when owned memory or a graph object goes, by its id.
    holders: FxHashMap<u64, Holders>,
    /// Live-ins that recordings copy, of all of them.
    copied: usize,
    /// Where each function's calls begin, by its id.
    roots: FxHashMap<u64, Start>,
    cursor: Option<usize>,
    caller: Caller,
    /// Something ran without a recording since the call began or a recording ran.
    strayed: bool,
    shares: Shares,
}

fn hash_words(identity: Identity, seed: u64, shape: &[u64], addrs: &[u64]) -> u64 {
    let mut h = FxHasher::default();
    std::hash::Hash::hash(&identity, &mut h);
    h.write_u64(seed);
    for &w in shape {
        h.write_u64(w);
    }
    for &w in addrs {
        h.write_u64(w);
    }
    h.finish()
}

impl Tree {
    /// Forgets everything; ids go on.
    pub(crate) fn clear(&mut self, log: &mut Log) {
        self.evict(self.all(), log);
        let (shares, next_id) = (self.shares.emptied(), self.next_id);
        *self = Self { shares, next_id, ..Self::default() };
    }

    /// Goes to a function's root.
    pub(crate) fn enter(&mut self, id: u64, name: &'static str) {
        self.cursor = None;
        self.strayed = false;
        self.caller = Caller { id, name };
        self.groups.begin_call();
    }

    /// Whose call runs, or ran last.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn recording(&self, at: usize) -> Option<&Recording> {
        self.recordings.get(at)?.as_ref()
    }

    pub(crate) fn recordings(&self) -> impl Iterator<Item = &Recording> {
        self.recordings.iter().flatten()
    }

    /// The recordings with their indices, in the order of recording.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = (usize, &Recording)> {
        self.indices.values().filter_map(|&at| Some((at as usize, self.recording(at as usize)?)))
    }

    /// The recording of that id, if there is one still.
    pub(crate) fn by_id(&self, id: RecordingId) -> Option<&Recording> {
        self.recording(*self.indices.get(&id)? as usize)
    }

    /// The id of a recording; of none, that of the next.
    pub(crate) fn id(&self, at: usize) -> RecordingId {
        self.recording(at).map_or(self.next_id, Recording::id)
    }

    /// Number of recordings, and bytes of their executables.
    pub(crate) fn recorded(&self) -> (u64, u64) {
        (self.live as u64, self.executables().1)
    }

    /// What of the arenas must be there for its recordings.
    pub(crate) fn extent(&self) -> Extent {
        self.recordings().fold(Extent::default(), |extent, recording| extent.max(recording.usage.extent))
    }

    /// A recording as the device has it; `None` if there is none of that id. One without a kernel has no nodes.
    pub(crate) fn topology(&self, id: RecordingId) -> Option<crate::Result<Topology>> {
        let recording = self.by_id(id)?;
        Some(match (&recording.sharing, &recording.exec) {
            // Its executable may run another recording now.
            (Some(reuse), _) => reuse.graph.topology(),
            (None, Some(exec)) => exec.topology(),
            (None, None) => Ok(Topology::default()),
        })
    }

    /// How many entries its tables have.
    pub(crate) fn tables(&self) -> Tables {
        Tables {
            recordings: self.live,
            places: self.recordings.len(),
            groups: self.groups.len(),
            copied_sets: self.groups.copied_sets(),
            edges: self.edges.len(),
            holders: self.holders.len(),
            starts: self.roots.len(),
            ..Tables::default()
        }
    }

    /// How many live-ins recordings copy.
    pub(crate) fn copied_live_ins(&self) -> usize {
        self.copied
    }

    /// Where calls begin, one entry for each graph object whose recordings ran.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &Start> {
        self.roots.values()
    }

    /// The recording of this segment from this state with these inputs, if `free` says that its
    /// result blocks can be taken. Tries the child that came last time first.
    pub(crate) fn find(
        &self,
        identity: Identity,
        entry: StateId,
        shape: &[u64],
        addrs: &[u64],
        free: impl Fn(&Recording) -> bool,
    ) -> Option<usize> {
        let predicted = match self.cursor {
            Some(at) => self.recordings[at].as_ref().and_then(|n| n.likely),
            None if self.strayed => None,
            None => self.roots.get(&self.caller.id).and_then(|start| start.likely),
        };
        if let Some(at) = predicted
            && let Some(recording) = &self.recordings[at]
            && recording.is(identity, entry, shape, addrs)
            && free(recording)
        {
            return Some(at);
        }
        let hash = hash_words(identity, entry_seed(entry), shape, addrs);
        let fits = |n: &Recording| {
            n.is(identity, entry, shape, addrs) && free(n) && self.skipped(n.group, addrs).is_none()
        };
        self.index
            .get(&hash)?
            .iter()
            .map(|&at| at as usize)
            .find(|&at| self.recordings[at].as_ref().is_some_and(&fits))
    }

    /// Of all that `find` compares.
    pub(crate) fn hash_of_key(
        &self,
        identity: Identity,
        entry: StateId,
        shape: &[u64],
        addrs: &[u64],
    ) -> u64 {
        hash_words(identity, entry_seed(entry), shape, addrs)
    }

    /// The recordings of this segment from this state, wherever their live-ins in arenas lay.
    pub(crate) fn alike<'t>(
        &'t self,
        identity: Identity,
        entry: StateId,
        shape: &'t [u64],
        addrs: &[u64],
    ) -> impl Iterator<Item = usize> + 't {
        let owned = owned_only(addrs);
        let hash = hash_words(identity, entry_seed(entry), shape, &owned);
        let fits = move |recording: &Recording| {
            (recording.identity, recording.entry) == (identity, entry)
                && *recording.shape == *shape
                && owned_only(&recording.addrs) == owned
        };
        let list = self.anywhere.get(&hash).into_iter().flatten().map(|&at| at as usize);
        list.filter(move |&at| self.recordings[at].as_ref().is_some_and(&fits))
    }

    /// The results of a recording were held in that step, or are no longer; the first went to `handed`.
    pub(crate) fn crowd(&mut self, at: usize, step: Option<u64>, handed: Option<u64>) {
        if let Some(recording) = &mut self.recordings[at] {
            (recording.crowded, recording.handed) = (step, handed);
        }
    }

    /// Moves along an edge, and remembers it as the likely one. A way that was taken last time, too, costs
    /// one comparison.
    pub(crate) fn follow(&mut self, at: usize) {
        match self.cursor {
            Some(from) => {
                if let Some(recording) = &mut self.recordings[from]
                    && recording.likely != Some(at)
                {
                    recording.likely = Some(at);
                    self.seen(Before::Recording(from as u32), at);
                }
            }
            None if self.strayed => {
                if let Some(recording) = &mut self.recordings[at] {
                    recording.after_eager = true;
                }
            }
            None => self.begun_with(at),
        }
        self.cursor = Some(at);
        self.strayed = false;
        if let Some(recording) = &mut self.recordings[at] {
            recording.hits += 1;
        }
    }

    /// Where the next recording hangs.
    pub(crate) fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    /// Leaves the recorded path: work ran that no recording covers.
    pub(crate) fn leave_path(&mut self) {
        self.cursor = None;
        self.strayed = true;
    }

    pub(crate) fn insert(&mut self, mut recording: Recording) -> usize {
        let at = self.vacant.pop().map_or(self.recordings.len(), |at| at as usize);
        recording.links.id = self.next_id;
        self.next_id = self.next_id.next();
        recording.links.parent = recording.parent.and_then(|parent| Some(self.recording(parent)?.id()));
        self.indices.insert(recording.links.id, at as u32);
        let hash =
            hash_words(recording.identity, entry_seed(recording.entry), &recording.shape, &recording.addrs);
        self.index.entry(hash).or_default().push(at as u32);
        self.anywhere.entry(anywhere(&recording)).or_default().push(at as u32);
        let edge = self.edge_for(recording.parent, recording.group, &recording.addrs);
        self.edges[edge].hang(recording.links.id, at);
        recording.links.edge = Some(edge as u32);
        self.groups.hang(recording.group, at, &recording.copied);
        for &id in &recording.owned {
            self.holders.entry(id).or_default().recordings.insert(at as u32);
        }
        self.copied += recording.copied.len();
        self.shares.add(at, &mut recording);
        if at == self.recordings.len() {
            self.recordings.push(None);
        }
        self.recordings[at] = Some(recording);
        self.live += 1;
        at
    }
}

/// The addresses of owned memory alone.
fn owned_only(addrs: &[u64]) -> SmallVec<[u64; 32]> {
    addrs.chunks_exact(2).flat_map(|a| [a[0], if a[0] == 0 { 0 } else { a[1] }]).collect()
}

fn anywhere(recording: &Recording) -> u64 {
    hash_words(
        recording.identity,
        entry_seed(recording.entry),
        &recording.shape,
        &owned_only(&recording.addrs),
    )
}

fn entry_seed(entry: StateId) -> u64 {
    let mut h = FxHasher::default();
    std::hash::Hash::hash(&entry, &mut h);
    h.finish()
}
