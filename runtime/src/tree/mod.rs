//! The graph tree: recordings, found by the state in which they start and by what they use.

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

/// The identity of what is recorded.
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
    /// The ordinal of the group's allocation, if it is one.
    pub(crate) ordinal: Option<u32>,
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

/// One recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
    /// The caller in whose call it was recorded.
    pub(crate) caller: Caller,
    /// The `#[dims]` symbols of that call, with their sizes.
    pub(crate) sizes: Box<[(&'static str, usize)]>,
    pub(crate) group: GroupId,
    pub(crate) parent: Option<usize>,
    pub(crate) entry: StateId,
    pub(crate) exit: StateId,
    pub(crate) shape: Box<[u64]>,
    /// As in the key, with [`COPIED`] for the address of a copied live-in.
    pub(crate) addrs: Box<[u64]>,
    pub(crate) copied: Box<[CopiedInput]>,
    /// The addresses of its live-ins in arenas when it was recorded.
    pub(crate) places: Box<[LiveInPlace]>,
    /// How its live-ins overlapped, if its body queried it: it is a recording of that answer.
    pub(crate) aliases: Option<Box<[u64]>>,
    pub(crate) exec: Option<Arc<dyn GraphExec>>,
    /// Set if it was recorded so that others can run through the same executable; they do if it is the same.
    pub(crate) sharing: Option<ExecReuse>,
    pub(crate) blocks: Vec<OutputBlock>,
    pub(crate) outputs: Vec<Stored>,
    /// The ids of owned memory to which it refers.
    pub(crate) owned: Vec<u64>,
    /// State that it writes.
    pub(crate) writes: Vec<(u64, SharedMemory)>,
    /// The blocks that were live in the pool when it was recorded.
    pub(crate) alive: Alive,
    pub(crate) usage: Usage,
    /// The number of runs; the first was directly after its recording.
    pub(crate) hits: u64,
    pub(crate) likely: Option<usize>,
    /// Its links, which the tree maintains.
    pub(crate) links: Links,
    /// The step in which its results were last found held when it ran again, if that was recent.
    pub(crate) crowded: Option<u64>,
    /// The address to which the first of them was moved then.
    pub(crate) handed: Option<u64>,
    /// Set if it was observed to follow something that ran without a recording.
    pub(crate) after_eager: bool,
}

/// The beginning of a function's calls.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) caller: Caller,
    pub(super) likely: Option<usize>,
    /// Every recording that was observed to come first, in the order of first occurrence.
    pub(super) first: BTreeMap<u64, u32>,
}

impl Start {
    /// Returns the recordings that were observed to come first, in the order of first occurrence.
    pub(crate) fn first(&self) -> impl Iterator<Item = usize> {
        self.first.values().map(|&at| at as usize)
    }
}

impl Recording {
    /// Returns the id by which users know it. Ids are never reused.
    pub(crate) fn id(&self) -> RecordingId {
        self.links.id
    }

    /// Returns the address of a device operand, as it is in its key.
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
    /// Indices are reused: everything that refers to a recording by its index is linked to it, and removed
    /// with it.
    recordings: Vec<Option<Recording>>,
    vacant: Vec<u32>,
    live: usize,
    /// The index of each recording.
    indices: BTreeMap<RecordingId, u32>,
    next_id: RecordingId,
    /// Numbers observations in the order of first occurrence.
    sequence: u64,
    index: FxHashMap<u64, SmallVec<[u32; 2]>>,
    /// Like `index`, for any addresses of live-ins in arenas.
    anywhere: FxHashMap<u64, SmallVec<[u32; 2]>>,
    groups: Groups,
    edges: Slab<EdgeState>,
    edge_index: FxHashMap<u64, SmallVec<[u32; 1]>>,
    any_skipped: bool,
    /// The objects to be evicted with owned memory or a graph object, by its id.
    holders: FxHashMap<u64, Holders>,
    /// The number of live-ins that recordings copy.
    copied: usize,
    /// The beginning of each function's calls, by its id.
    roots: FxHashMap<u64, Start>,
    cursor: Option<usize>,
    caller: Caller,
    /// Set if something ran without a recording since the call began or a recording ran.
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
    /// Forgets everything; ids continue.
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

    /// Returns the caller that is running, or ran last.
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

    /// Returns the recordings with their indices, in the order of recording.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = (usize, &Recording)> {
        self.indices.values().filter_map(|&at| Some((at as usize, self.recording(at as usize)?)))
    }

    /// Returns the recording with that id, if it still exists.
    pub(crate) fn by_id(&self, id: RecordingId) -> Option<&Recording> {
        self.recording(*self.indices.get(&id)? as usize)
    }

    /// Returns the id of a recording; if there is none, the next id.
    pub(crate) fn id(&self, at: usize) -> RecordingId {
        self.recording(at).map_or(self.next_id, Recording::id)
    }

    /// Returns the number of recordings, and the bytes of their executables.
    pub(crate) fn recorded(&self) -> (u64, u64) {
        (self.live as u64, self.executables().1)
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

    /// Returns the number of live-ins that recordings copy.
    pub(crate) fn copied_live_ins(&self) -> usize {
        self.copied
    }

    /// Returns the beginnings of calls, one entry for each graph object whose recordings ran.
    pub(crate) fn starts(&self) -> impl Iterator<Item = &Start> {
        self.roots.values()
    }

    /// Returns the recording of this segment from this state with these inputs, if `free` states that its
    /// result blocks can be used. Tries the child that followed last time first.
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

    /// Returns a hash of everything that `find` compares.
    pub(crate) fn hash_of_key(
        &self,
        identity: Identity,
        entry: StateId,
        shape: &[u64],
        addrs: &[u64],
    ) -> u64 {
        hash_words(identity, entry_seed(entry), shape, addrs)
    }

    /// Returns the recordings of this segment from this state, for any addresses of their live-ins in arenas.
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

    /// Notes that the results of a recording were held in that step, or no longer are; the first was moved to
    /// `handed`.
    pub(crate) fn crowd(&mut self, at: usize, step: Option<u64>, handed: Option<u64>) {
        if let Some(recording) = &mut self.recordings[at] {
            (recording.crowded, recording.handed) = (step, handed);
        }
    }

    /// Moves along an edge, and remembers it as the likely one. A path that was also taken last time costs
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

    /// Returns the parent of the next recording.
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

/// Returns only the addresses of owned memory.
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
