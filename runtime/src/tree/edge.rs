//! Edges: counts of the recordings at one place of the tree, and the live-ins that they copy.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::{Identity, Recording, Tree, entry_seed, hash_words, links::Before};
use crate::{
    CopiedSlot,
    backend::SharedMemory,
    base::{reason::FallbackReason, recording_id::RecordingId},
    memory::{GroupId, pool::StateId},
    observe::log::Log,
    value::key::addr_at,
};

/// Replaces the address of a copied live-in in a recording's key; it is not a valid address.
pub(crate) const COPIED: u64 = u64::MAX;

/// The positions of device operands in a key, ascending.
pub(crate) type Positions = SmallVec<[u32; 2]>;

/// The unit that the re-record limit counts. Parameters are part of it, so that a model's layers do not share
/// one limit, and a replaced parameter does not use up the limit of the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Edge {
    parent: Option<usize>,
    group: GroupId,
    owned: Box<[u64]>,
}

/// Returns the owned memory in a key.
fn owned(addrs: &[u64]) -> impl Iterator<Item = u64> {
    addrs.iter().step_by(2).copied().filter(|&id| id != 0)
}

fn edge_hash(parent: Option<usize>, group: GroupId, addrs: &[u64]) -> u64 {
    let mut h = FxHasher::default();
    (parent, group).hash(&mut h);
    owned(addrs).for_each(|id| h.write_u64(id));
    h.finish()
}

impl Edge {
    fn is(&self, parent: Option<usize>, group: GroupId, addrs: &[u64]) -> bool {
        (self.parent, self.group) == (parent, group) && self.owned.iter().copied().eq(owned(addrs))
    }
}

/// The number of times that a live-in was at a different address than in every recording, and where it was
/// counted last.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    count: u32,
    last: u64,
}

#[derive(Debug, Default)]
pub(crate) struct EdgeState {
    edge: Edge,
    hash: u64,
    /// The number of its recordings, including evicted ones.
    spent: usize,
    /// Its existing recordings, by their ids.
    recordings: BTreeMap<RecordingId, u32>,
    /// By position.
    moves: SmallVec<[Moves; 4]>,
    /// The live-ins that recordings copy from now on.
    pub(crate) copied: Positions,
    /// The reason why it no longer uses graphs.
    skipped: Option<FallbackReason>,
}

impl EdgeState {
    pub(super) fn hang(&mut self, id: RecordingId, at: usize) {
        self.spent += 1;
        self.recordings.insert(id, at as u32);
    }

    pub(super) fn unhang(&mut self, id: RecordingId) {
        self.recordings.remove(&id);
    }
}

/// A live-in that a recording reads from a buffer of its own.
#[derive(Debug)]
pub(crate) struct CopiedInput {
    /// Its position in the key.
    pub(crate) position: u32,
    /// The buffer; its first byte corresponds to the live-in's first.
    pub(crate) memory: SharedMemory,
    /// The bytes of it that the recording reads.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) copies: u64,
}

impl Tree {
    fn find_edge(&self, parent: Option<usize>, group: GroupId, addrs: &[u64]) -> Option<usize> {
        let candidates = self.edge_index.get(&edge_hash(parent, group, addrs))?;
        let is = |at: &usize| self.edges.get(*at).is_some_and(|state| state.edge.is(parent, group, addrs));
        candidates.iter().map(|&at| at as usize).find(is)
    }

    /// Returns the edge, which is created if it does not exist.
    pub(super) fn edge_for(&mut self, parent: Option<usize>, group: GroupId, addrs: &[u64]) -> usize {
        if let Some(known) = self.find_edge(parent, group, addrs) {
            return known;
        }
        let hash = edge_hash(parent, group, addrs);
        let edge = Edge { parent, group, owned: owned(addrs).collect() };
        let at = self.edges.vacant_key();
        let id = at as u32;
        if let Some(parent) = parent.and_then(|parent| self.recordings[parent].as_mut()) {
            parent.links.below.insert(id);
        }
        for &owned in &edge.owned {
            self.holders.entry(owned).or_default().edges.insert(id);
        }
        self.groups[group].edges.insert(id);
        self.edge_index.entry(hash).or_default().push(id);
        self.edges.insert(EdgeState { edge, hash, ..EdgeState::default() })
    }

    /// Removes an edge whose parent, group or memory is gone, so that it can no longer be reached. Its
    /// recordings remain.
    pub(super) fn remove_edge(&mut self, at: usize) {
        let Some(gone) = self.edges.try_remove(at) else { return };
        let id = at as u32;
        if let Some(list) = self.edge_index.get_mut(&gone.hash) {
            list.retain(|&mut edge| edge != id);
            if list.is_empty() {
                self.edge_index.remove(&gone.hash);
            }
        }
        if let Some(parent) = gone.edge.parent.and_then(|parent| self.recordings[parent].as_mut()) {
            parent.links.below.remove(&id);
        }
        for &owned in &gone.edge.owned {
            self.let_go(owned, |holders| holders.edges.remove(&id));
        }
        if self.knows_group(gone.edge.group) {
            self.groups[gone.edge.group].edges.remove(&id);
        }
        for &recording in gone.recordings.values() {
            if let Some(recording) = &mut self.recordings[recording as usize] {
                (recording.links.edge, recording.parent) = (None, None);
            }
        }
    }

    fn edge(&self, group: GroupId, addrs: &[u64]) -> Option<&EdgeState> {
        self.edges.get(self.find_edge(self.cursor, group, addrs)?)
    }

    fn edge_mut(&mut self, group: GroupId, addrs: &[u64]) -> &mut EdgeState {
        let at = self.edge_for(self.cursor, group, addrs);
        &mut self.edges[at]
    }

    /// Returns the recordings that were made on the same edge.
    pub(crate) fn siblings(&self, group: GroupId, addrs: &[u64]) -> Vec<&Recording> {
        let Some(edge) = self.edge(group, addrs) else { return Vec::new() };
        edge.recordings.values().filter_map(|&at| self.recording(at as usize)).collect()
    }

    /// Returns the number of recordings made on this edge, including evicted ones.
    pub(crate) fn spent(&self, group: GroupId, addrs: &[u64]) -> usize {
        self.edge(group, addrs).map_or(0, |edge| edge.spent)
    }

    /// Returns the live-ins that the next recording of this edge copies, if it can.
    pub(crate) fn copied(&self, group: GroupId, addrs: &[u64]) -> Positions {
        self.edge(group, addrs).map(|edge| edge.copied.clone()).unwrap_or_default()
    }

    /// Makes future recordings of this edge copy that live-in.
    pub(crate) fn switch_to_copy(&mut self, group: GroupId, addrs: &[u64], position: u32) {
        let copied = &mut self.edge_mut(group, addrs).copied;
        if let Err(at) = copied.binary_search(&position) {
            copied.insert(at, position);
        }
    }

    /// Counts the device live-ins whose addresses alone keep the recordings of this edge from matching: those
    /// that are at a different address than in all recordings from this pool state. Returns their positions
    /// and counts. A call that is repeated at the same addresses counts once.
    pub(crate) fn count_moves(
        &mut self,
        group: GroupId,
        addrs: &[u64],
        entry: StateId,
    ) -> SmallVec<[(u32, u32); 2]> {
        let mut moved = SmallVec::new();
        let alike: Vec<&Recording> =
            self.siblings(group, addrs).into_iter().filter(|n| n.entry == entry).collect();
        if alike.is_empty() {
            return moved;
        }
        for (position, operand) in addrs.chunks_exact(2).enumerate() {
            let known = |n: &&Recording| [operand[1], COPIED].contains(&n.addr(position as u32));
            if operand[0] == 0 && !alike.iter().any(known) {
                moved.push((position as u32, 0));
            }
        }
        let edge = self.edge_mut(group, addrs);
        edge.moves.resize(addrs.len() / 2, Moves::default());
        for (position, count) in &mut moved {
            let moves = &mut edge.moves[*position as usize];
            let addr = addr_at(addrs, *position);
            if moves.last != addr {
                *moves = Moves { count: moves.count.saturating_add(1), last: addr };
            }
            *count = moves.count;
        }
        moved
    }

    /// Ends the use of graphs on this edge. Returns how many recordings were evicted.
    pub(crate) fn skip(&mut self, group: GroupId, addrs: &[u64], reason: FallbackReason, log: &mut Log) {
        self.edge_mut(group, addrs).skipped = Some(reason);
        self.any_skipped = true;
        // Predictions are not consulted, so none may lead there.
        match self.cursor.and_then(|at| self.recordings[at].as_mut()) {
            Some(recording) => recording.likely = None,
            None => self.forget_first(group, addrs),
        }
        let recordings =
            self.edge(group, addrs).map(|edge| edge.recordings.values().map(|&at| at as usize).collect());
        self.evict(recordings.unwrap_or_default(), log);
    }

    /// Makes no call expect to begin with a recording of this group and this owned memory.
    fn forget_first(&mut self, group: GroupId, addrs: &[u64]) {
        // If layers have weights of their own, fewer recordings contain the memory than belong to the group.
        let baked = owned(addrs).next().and_then(|id| Some(self.holders.get(&id)?.recordings.iter()));
        let all = match baked {
            Some(recordings) => recordings.map(|&at| at as usize).collect(),
            None => self.groups.recordings(group),
        };
        for at in all {
            let Some(recording) = self.recordings[at].as_ref().filter(|n| n.group == group) else { continue };
            for before in recording.links.before.keys() {
                if let Before::Start(id) = before
                    && let Some(start) = self.roots.get_mut(id)
                {
                    start.likely = start.likely.filter(|&likely| likely != at);
                }
            }
        }
    }

    /// Returns the reason why this edge no longer uses graphs, if it does not.
    pub(crate) fn skipped(&self, group: GroupId, addrs: &[u64]) -> Option<&FallbackReason> {
        if !self.any_skipped {
            return None;
        }
        self.edge(group, addrs)?.skipped.as_ref()
    }

    /// Returns the recording of this segment that matches except for live-ins that it copies.
    pub(crate) fn find_copying(
        &self,
        group: GroupId,
        identity: Identity,
        entry: StateId,
        (shape, addrs): (&[u64], &[u64]),
        free: impl Fn(&Recording) -> bool,
    ) -> Option<usize> {
        for (positions, _) in &self.groups[group].copied {
            let masked = masked(addrs, positions);
            let hash = hash_words(identity, entry_seed(entry), shape, &masked);
            let Some(recordings) = self.index.get(&hash) else { continue };
            let found = recordings.iter().map(|&at| at as usize).find(|&at| {
                self.recordings[at]
                    .as_ref()
                    .is_some_and(|n| n.group == group && n.is(identity, entry, shape, &masked) && free(n))
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Counts another copy of the inputs that a recording copies.
    pub(crate) fn count_copies(&mut self, at: usize) {
        if let Some(recording) = &mut self.recordings[at] {
            recording.copied.iter_mut().for_each(|c| c.copies += 1);
        }
    }

    pub(crate) fn copied_slots(&self) -> Vec<CopiedSlot> {
        let of = |(_, recording): (usize, &Recording)| -> Vec<CopiedSlot> {
            let one = |c: &CopiedInput| CopiedSlot {
                segment: recording.site.to_string(),
                recording: recording.id(),
                live_in: c.position as usize,
                bytes: c.bytes,
                copies: c.copies,
            };
            recording.copied.iter().map(one).collect()
        };
        self.ordered().flat_map(of).collect()
    }
}

/// Returns the addresses without those of copied live-ins.
pub(crate) fn masked(addrs: &[u64], positions: &[u32]) -> SmallVec<[u64; 32]> {
    let mut out: SmallVec<[u64; 32]> = SmallVec::from_slice(addrs);
    for &position in positions {
        out[2 * position as usize + 1] = COPIED;
    }
    out
}
