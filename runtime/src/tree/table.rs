//! The recordings of the tree, and their indices.

use super::Recording;

/// Where a recording is in the tree. Indices are used again: whatever refers to one is tied to its recording, and goes when
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
pub(super) struct RecordingTable {
    all: Vec<Option<Recording>>,
    vacant: Vec<RecordingIndex>,
    live: usize,
}

impl RecordingTable {
    #[inline]
    pub(super) fn get(&self, at: RecordingIndex) -> Option<&Recording> {
        self.all.get(at.at())?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: RecordingIndex) -> Option<&mut Recording> {
        self.all.get_mut(at.at())?.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Recording> {
        self.all.iter().flatten()
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// How many indices there are, vacant ones included.
    pub(super) fn places(&self) -> usize {
        self.all.len()
    }

    /// Where the next recording goes.
    pub(super) fn next_index(&self) -> RecordingIndex {
        self.vacant.last().copied().unwrap_or(RecordingIndex(self.all.len() as u32))
    }

    /// Adds a recording at the [next index](Self::next_index).
    pub(super) fn insert(&mut self, recording: Recording) {
        self.live += 1;
        match self.vacant.pop() {
            Some(at) => self.all[at.at()] = Some(recording),
            None => self.all.push(Some(recording)),
        }
    }

    pub(super) fn remove(&mut self, at: RecordingIndex) -> Option<Recording> {
        /// Vacant places that are not worth giving back.
        const FEW: usize = 1024;
        let gone = self.all.get_mut(at.at())?.take()?;
        self.live -= 1;
        self.vacant.push(at);
        if self.live == 0 && self.all.len() > FEW {
            // Amortised, it costs nothing.
            self.all = Vec::new();
            self.vacant = Vec::new();
        }
        Some(gone)
    }
}
