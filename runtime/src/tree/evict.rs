//! Eviction of recordings, and of everything that was kept only for them. It takes time in proportion to what
//! it evicts.

use std::collections::BTreeSet;

use super::{Cursor, RecordingIndex, Tree, edge::EdgeIndex};
use crate::{
    memory::GroupId,
    observe::{log::Log, occurrence::Occurrence},
    value::owned::OwnerId,
};

/// The objects to be evicted with owned memory or a graph object.
#[derive(Debug, Default)]
pub(super) struct Holders {
    /// Recordings that contain its address.
    pub(super) recordings: BTreeSet<RecordingIndex>,
    /// Edges that refer to it.
    pub(super) edges: BTreeSet<EdgeIndex>,
    /// Groups of its whole calls.
    pub(super) groups: BTreeSet<GroupId>,
}

impl Holders {
    fn is_empty(&self) -> bool {
        self.recordings.is_empty() && self.edges.is_empty() && self.groups.is_empty()
    }
}

impl Tree {
    /// Returns the places of all recordings, in the order in which they were made.
    pub(super) fn all(&self) -> Vec<RecordingIndex> {
        self.indices.values().copied().collect()
    }

    /// Removes every recording because the runtime ends, which is not an eviction.
    pub(crate) fn end(&mut self, log: &mut Log) {
        self.destroy(self.all(), log);
    }

    /// Removes the recordings of a group.
    pub(crate) fn evict_group(&mut self, group: GroupId, log: &mut Log) {
        self.evict(self.groups.recordings(group), log);
    }

    /// Removes everything that was recorded with owned memory and graph objects that were dropped, and what
    /// was learned for them.
    pub(crate) fn retire(&mut self, ids: &[OwnerId], log: &mut Log) {
        let recordings = |id| self.holders.get(id).into_iter().flat_map(|holders| &holders.recordings);
        self.evict(ids.iter().flat_map(recordings).copied().collect(), log);
        for &id in ids {
            if let Some(Holders { edges, groups, .. }) = self.holders.remove(&id) {
                edges.into_iter().for_each(|edge| self.remove_edge(edge));
                groups.into_iter().for_each(|group| self.remove_group(group));
            }
            self.forget_start(id);
        }
    }

    /// Returns whether anything would be evicted with it.
    pub(crate) fn holds(&self, id: OwnerId) -> bool {
        self.holders.contains_key(&id) || self.roots.contains_key(&id) || self.shares.has_cached()
    }

    /// Removes recordings, in the order in which they were made.
    pub(super) fn evict(&mut self, recordings: Vec<RecordingIndex>, log: &mut Log) {
        let count = self.destroy(recordings, log);
        if count > 0 {
            log.emit(Occurrence::Evicted { recordings: count });
        }
    }

    /// Like [`evict`](Self::evict), for any reason; returns how many there were.
    fn destroy(&mut self, mut recordings: Vec<RecordingIndex>, log: &mut Log) -> usize {
        recordings.sort_unstable_by_key(|&at| self.id(at));
        recordings.dedup();
        let before = self.len();
        for at in recordings {
            if let Some(recording) = self.recordings.get(at) {
                log.emit(Occurrence::Destroyed { recording: recording.as_recorded() });
            }
            self.remove(at);
        }
        before - self.len()
    }

    fn remove(&mut self, at: RecordingIndex) {
        let Some(recording) = self.recordings.remove(at) else { return };
        let (hash, anywhere) = (recording.hash(), recording.hash_anywhere());
        for (index, hash) in [(&mut self.index, hash), (&mut self.anywhere, anywhere)] {
            if let Some(list) = index.get_mut(&hash) {
                list.retain(|&mut other| other != at);
                if list.is_empty() {
                    index.remove(&hash);
                }
            }
        }
        self.indices.remove(&recording.id());
        self.copied -= recording.copied.len();
        if self.cursor == Cursor::At(at) {
            self.cursor = Cursor::Start;
        }
        self.untie(at, &recording.links);
        if let Some(edge) = recording.links.edge {
            self.edges[edge.at()].unhang(recording.id());
        }
        for &edge in &recording.links.below {
            self.remove_edge(edge);
        }
        for &id in &recording.owned {
            self.release_owner(id, |holders| holders.recordings.remove(&at));
        }
        self.groups.unhang(recording.group, at, &recording.copied);
        self.shares.remove(recording);
    }

    /// Removes an object to be evicted with an id; an entry without objects is removed as well.
    pub(super) fn release_owner(&mut self, id: OwnerId, take: impl FnOnce(&mut Holders) -> bool) {
        if let Some(holders) = self.holders.get_mut(&id) {
            take(holders);
            if holders.is_empty() {
                self.holders.remove(&id);
            }
        }
    }
}
