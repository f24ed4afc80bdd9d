//! The recordings of the tree, and their indices.

use slab::Slab;

use super::Recording;

/// The place of a recording in the tree. Indices are used again: whatever refers to one is tied to its recording, and goes when
/// that goes. Users know a recording by its [`RecordingId`](crate::RecordingId).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordingIndex(u32);

impl RecordingIndex {
    #[inline]
    fn at(self) -> usize {
        self.0 as usize
    }
}

/// All recordings.
#[derive(Debug, Default)]
pub(super) struct RecordingTable(Slab<Recording>);

impl RecordingTable {
    #[inline]
    pub(super) fn get(&self, at: RecordingIndex) -> Option<&Recording> {
        self.0.get(at.at())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: RecordingIndex) -> Option<&mut Recording> {
        self.0.get_mut(at.at())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Recording> {
        self.0.iter().map(|(_, recording)| recording)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of recordings for which there is memory.
    pub(super) fn places(&self) -> usize {
        self.0.capacity()
    }

    /// Returns the index of the next recording.
    pub(super) fn next_index(&self) -> RecordingIndex {
        RecordingIndex(self.0.vacant_key() as u32)
    }

    /// Adds a recording at the [next index](Self::next_index).
    pub(super) fn insert(&mut self, recording: Recording) {
        self.0.insert(recording);
    }

    pub(super) fn remove(&mut self, at: RecordingIndex) -> Option<Recording> {
        /// Vacant places that are not worth giving back.
        const FEW: usize = 1024;
        let gone = self.0.try_remove(at.at())?;
        if self.0.is_empty() && self.places() > FEW {
            // Amortised, this costs nothing.
            self.0 = Slab::new();
        }
        Some(gone)
    }
}
