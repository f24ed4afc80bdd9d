//! The links of recordings to other entries, so that evicting one also removes what refers to it, and
//! examines nothing else.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::{RecordingIndex, Start, Tree, edge::EdgeIndex};
use crate::{base::recording_id::RecordingId, value::owned::OwnerId};

/// The predecessor of a recording: another recording, or the start of a graph object's calls, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Before {
    Recording(RecordingIndex),
    Start(OwnerId),
}

/// The links of one recording.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(super) id: RecordingId,
    /// The id of its parent, which may have been evicted.
    pub(super) parent: Option<RecordingId>,
    /// Its edge, while that is known.
    pub(super) edge: Option<EdgeIndex>,
    /// The edges below it.
    pub(super) below: BTreeSet<EdgeIndex>,
    /// The recordings that were observed to follow, in the order of first occurrence.
    pub(super) next: BTreeMap<u64, RecordingIndex>,
    /// The observed direct predecessors, with the key of the recording in their `next`, or in
    /// [`Start::first`].
    pub(super) before: BTreeMap<Before, u64>,
    /// Bytes of its executable.
    pub(super) exec_bytes: u64,
}

impl Links {
    /// Returns the id of the recording after which it was recorded.
    pub(crate) fn parent(&self) -> Option<RecordingId> {
        self.parent
    }

    /// Returns the recordings that were observed to follow, in the order of first occurrence.
    pub(crate) fn next(&self) -> impl Iterator<Item = RecordingIndex> {
        self.next.values().copied()
    }
}

impl Tree {
    /// Notes that a recording followed another one, or came first.
    pub(super) fn seen(&mut self, before: Before, at: RecordingIndex) {
        let Some(recording) = self.recordings.get_mut(at) else { return };
        let Entry::Vacant(entry) = recording.links.before.entry(before) else { return };
        self.sequence += 1;
        entry.insert(self.sequence);
        let list = match before {
            Before::Recording(from) => self.recordings.get_mut(from).map(|from| &mut from.links.next),
            Before::Start(id) => self.roots.get_mut(&id).map(|start| &mut start.first),
        };
        if let Some(list) = list {
            list.insert(self.sequence, at);
        }
    }

    /// Notes that a call begins with a recording.
    pub(super) fn begun_with(&mut self, at: RecordingIndex) {
        let caller = self.caller;
        let new = || Start { caller, likely: None, first: BTreeMap::new() };
        let start = self.roots.entry(caller.id).or_insert_with(new);
        if start.likely != Some(at) {
            start.likely = Some(at);
            self.seen(Before::Start(caller.id), at);
        }
    }

    /// Removes an evicted recording from the links of its predecessors and successors.
    pub(super) fn untie(&mut self, at: RecordingIndex, links: &Links) {
        for &next in links.next.values() {
            if let Some(recording) = self.recordings.get_mut(next) {
                recording.links.before.remove(&Before::Recording(at));
            }
        }
        for (before, sequence) in &links.before {
            match before {
                Before::Recording(from) => {
                    if let Some(from) = self.recordings.get_mut(*from) {
                        from.links.next.remove(sequence);
                        from.likely = from.likely.filter(|&likely| likely != at);
                    }
                }
                Before::Start(id) => {
                    let Some(start) = self.roots.get_mut(id) else { continue };
                    start.first.remove(sequence);
                    start.likely = start.likely.filter(|&likely| likely != at);
                    if start.first.is_empty() {
                        self.roots.remove(id);
                    }
                }
            }
        }
    }

    /// Removes a dropped graph object: no call begins there any more.
    pub(super) fn forget_start(&mut self, id: OwnerId) {
        let Some(start) = self.roots.remove(&id) else { return };
        for at in start.first() {
            if let Some(recording) = self.recordings.get_mut(at) {
                recording.links.before.remove(&Before::Start(id));
            }
        }
    }
}
