//! Edges: counts of the recordings at one place of the tree, and the live-ins that they copy.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::{Recording, RecordingIndex, Tree, links::Before};
use crate::{
    CopiedSlot,
    backend::SharedMemory,
    base::{reason::FallbackReason, recording_id::RecordingId},
    memory::{GroupId, pool::StateId},
    observe::log::Log,
    value::{key::KeyOperand, owned::OwnerId},
};

/// The positions of device operands in a key, ascending.
pub(crate) type Positions = SmallVec<[u32; 2]>;

/// The unit that the re-record limit counts. Parameters are part of it, so that a model's layers do not share
/// one limit, and a replaced parameter does not use up the limit of the old one.
#[derive(Debug)]
struct Edge {
    parent: Option<RecordingIndex>,
    group: GroupId,
    owned: Box<[OwnerId]>,
}

/// The place of an edge in the tree, which is used again once the edge is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EdgeIndex(u32);

impl EdgeIndex {
    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Returns the owned memory in a key.
fn owned(operands: &[KeyOperand]) -> impl Iterator<Item = OwnerId> + Clone {
    operands.iter().filter_map(|operand| operand.owner)
}

fn edge_hash(parent: Option<RecordingIndex>, group: GroupId, owned: impl Iterator<Item = OwnerId>) -> u64 {
    let mut h = FxHasher::default();
    (parent, group).hash(&mut h);
    owned.for_each(|owner| owner.hash(&mut h));
    h.finish()
}

impl Edge {
    fn is(
        &self,
        parent: Option<RecordingIndex>,
        group: GroupId,
        owned: impl Iterator<Item = OwnerId>,
    ) -> bool {
        (self.parent, self.group) == (parent, group) && self.owned.iter().copied().eq(owned)
    }
}

/// The number of times that a live-in was at a different address than in every recording, and where it was
/// counted last.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    count: u32,
    last: Option<u64>,
}

/// A live-in that lies elsewhere than in every recording of its edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedOperand {
    /// Its position in the key.
    pub(crate) position: u32,
    /// The number of times that it has moved.
    pub(crate) moves: u32,
}

#[derive(Debug)]
pub(super) struct EdgeState {
    edge: Edge,
    hash: u64,
    /// The number of its recordings, including evicted ones.
    spent: usize,
    /// Its existing recordings, by their ids.
    recordings: BTreeMap<RecordingId, RecordingIndex>,
    /// By position.
    moves: SmallVec<[Moves; 4]>,
    /// The live-ins that recordings copy from now on.
    copied: Positions,
    /// The reason why it no longer uses graphs.
    skipped: Option<FallbackReason>,
}

impl EdgeState {
    fn new(edge: Edge, hash: u64) -> Self {
        Self {
            edge,
            hash,
            spent: 0,
            recordings: BTreeMap::new(),
            moves: SmallVec::new(),
            copied: Positions::new(),
            skipped: None,
        }
    }

    pub(super) fn hang(&mut self, id: RecordingId, at: RecordingIndex) {
        self.spent += 1;
        self.recordings.insert(id, at);
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
    fn find_edge(
        &self,
        parent: Option<RecordingIndex>,
        group: GroupId,
        owned: impl Iterator<Item = OwnerId> + Clone,
    ) -> Option<EdgeIndex> {
        let candidates = self.edge_index.get(&edge_hash(parent, group, owned.clone()))?;
        let is = |at: &EdgeIndex| {
            self.edges.get(at.at()).is_some_and(|state| state.edge.is(parent, group, owned.clone()))
        };
        candidates.iter().copied().find(is)
    }

    /// Returns the edge, which is created if it does not exist.
    pub(super) fn edge_for(
        &mut self,
        parent: Option<RecordingIndex>,
        group: GroupId,
        owned: impl Iterator<Item = OwnerId> + Clone,
    ) -> EdgeIndex {
        if let Some(known) = self.find_edge(parent, group, owned.clone()) {
            return known;
        }
        let hash = edge_hash(parent, group, owned.clone());
        let edge = Edge { parent, group, owned: owned.collect() };
        let at = EdgeIndex(self.edges.vacant_key() as u32);
        if let Some(parent) = parent.and_then(|parent| self.recordings.get_mut(parent)) {
            parent.links.below.insert(at);
        }
        for &owner in &edge.owned {
            self.holders.entry(owner).or_default().edges.insert(at);
        }
        self.groups[group].edges.insert(at);
        self.edge_index.entry(hash).or_default().push(at);
        self.edges.insert(EdgeState::new(edge, hash));
        at
    }

    /// Removes an edge whose parent, group or memory is gone, so that it can no longer be reached. Its
    /// recordings remain.
    pub(super) fn remove_edge(&mut self, at: EdgeIndex) {
        let Some(gone) = self.edges.try_remove(at.at()) else { return };
        if let Some(list) = self.edge_index.get_mut(&gone.hash) {
            list.retain(|&mut edge| edge != at);
            if list.is_empty() {
                self.edge_index.remove(&gone.hash);
            }
        }
        if let Some(parent) = gone.edge.parent.and_then(|parent| self.recordings.get_mut(parent)) {
            parent.links.below.remove(&at);
        }
        for &owner in &gone.edge.owned {
            self.release_owner(owner, |holders| holders.edges.remove(&at));
        }
        if self.knows_group(gone.edge.group) {
            self.groups[gone.edge.group].edges.remove(&at);
        }
        for &recording in gone.recordings.values() {
            if let Some(recording) = self.recordings.get_mut(recording) {
                (recording.links.edge, recording.parent) = (None, None);
            }
        }
    }

    fn edge(&self, group: GroupId, operands: &[KeyOperand]) -> Option<&EdgeState> {
        self.edges.get(self.find_edge(self.cursor(), group, owned(operands))?.at())
    }

    fn edge_mut(&mut self, group: GroupId, operands: &[KeyOperand]) -> &mut EdgeState {
        let at = self.edge_for(self.cursor(), group, owned(operands));
        &mut self.edges[at.at()]
    }

    /// Returns the recordings that were made on the same edge.
    pub(crate) fn siblings(&self, group: GroupId, operands: &[KeyOperand]) -> Vec<&Recording> {
        let Some(edge) = self.edge(group, operands) else { return Vec::new() };
        edge.recordings.values().filter_map(|&at| self.recording(at)).collect()
    }

    /// Returns the number of recordings made on this edge, including evicted ones.
    pub(crate) fn spent(&self, group: GroupId, operands: &[KeyOperand]) -> usize {
        self.edge(group, operands).map_or(0, |edge| edge.spent)
    }

    /// Returns the live-ins that the next recording of this edge copies, if it can.
    pub(crate) fn copied(&self, group: GroupId, operands: &[KeyOperand]) -> Positions {
        self.edge(group, operands).map(|edge| edge.copied.clone()).unwrap_or_default()
    }

    /// Makes future recordings of this edge copy that live-in.
    pub(crate) fn switch_to_copy(&mut self, group: GroupId, operands: &[KeyOperand], position: u32) {
        let copied = &mut self.edge_mut(group, operands).copied;
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
        operands: &[KeyOperand],
        entry: StateId,
    ) -> SmallVec<[MovedOperand; 2]> {
        let mut moved: SmallVec<[MovedOperand; 2]> = SmallVec::new();
        let alike: Vec<&Recording> =
            self.siblings(group, operands).into_iter().filter(|recording| recording.entry == entry).collect();
        if alike.is_empty() {
            return moved;
        }
        for (position, operand) in (0u32..).zip(operands) {
            let known = |r: &&Recording| r.operands[position as usize].fits(operand);
            if operand.owner.is_none() && !alike.iter().any(known) {
                moved.push(MovedOperand { position, moves: 0 });
            }
        }
        let edge = self.edge_mut(group, operands);
        edge.moves.resize(operands.len(), Moves::default());
        for operand in &mut moved {
            let at = operand.position as usize;
            let (moves, addr) = (&mut edge.moves[at], Some(operands[at].addr));
            if moves.last != addr {
                *moves = Moves { count: moves.count.saturating_add(1), last: addr };
            }
            operand.moves = moves.count;
        }
        moved
    }

    /// Ends the use of graphs on this edge.
    pub(crate) fn skip(
        &mut self,
        group: GroupId,
        operands: &[KeyOperand],
        reason: FallbackReason,
        log: &mut Log,
    ) {
        self.edge_mut(group, operands).skipped = Some(reason);
        self.any_skipped = true;
        // Predictions are not asked: none may lead there.
        match self.cursor().and_then(|at| self.recordings.get_mut(at)) {
            Some(recording) => recording.likely = None,
            None => self.forget_first(group, operands),
        }
        let recordings = self.edge(group, operands).map(|edge| edge.recordings.values().copied().collect());
        self.evict(recordings.unwrap_or_default(), log);
    }

    /// Makes no call expect to begin with a recording of this group and this owned memory.
    fn forget_first(&mut self, group: GroupId, operands: &[KeyOperand]) {
        // If layers have weights of their own, fewer recordings contain the memory than belong to the group.
        let baked = owned(operands).next().and_then(|id| Some(self.holders.get(&id)?.recordings.iter()));
        let all = match baked {
            Some(recordings) => recordings.copied().collect(),
            None => self.groups.recordings(group),
        };
        for at in all {
            let Some(recording) = self.recordings.get(at).filter(|r| r.group == group) else { continue };
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
    pub(crate) fn skipped(&self, group: GroupId, operands: &[KeyOperand]) -> Option<&FallbackReason> {
        if !self.any_skipped {
            return None;
        }
        self.edge(group, operands)?.skipped.as_ref()
    }

    /// Counts another copy of the inputs that a recording copies.
    pub(crate) fn count_copies(&mut self, at: RecordingIndex) {
        if let Some(recording) = self.recordings.get_mut(at) {
            recording.copied.iter_mut().for_each(|c| c.copies += 1);
        }
    }

    pub(crate) fn copied_slots(&self) -> Vec<CopiedSlot> {
        let of = |(_, recording): (RecordingIndex, &Recording)| -> Vec<CopiedSlot> {
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
