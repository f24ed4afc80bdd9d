//! What state held before `capture_all` wrote it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rustc_hash::FxHashMap;

use crate::backend::SharedMemory;

/// State as it was before `capture_all` wrote it: by the address of the state's memory, the state, and a copy of its
/// previous contents.
type StateSnapshot = FxHashMap<u64, (SharedMemory, SharedMemory)>;

/// The snapshots of a runtime, one after the other.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// While `capture_all` runs.
    open: Option<StateSnapshot>,
    /// How often `capture_all` began, for readers of logs, whose memory no snapshot saves.
    begun: Arc<AtomicU64>,
}

impl Snapshots {
    /// From here on, state is saved before it is written.
    pub(super) fn begin(&mut self) {
        self.open = Some(StateSnapshot::default());
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn begun(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.begun)
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether a snapshot is open that does not have this state.
    pub(super) fn lacks(&self, state: &SharedMemory) -> bool {
        self.open.as_ref().is_some_and(|saved| !saved.contains_key(&state.addr()))
    }

    pub(super) fn add(&mut self, state: &SharedMemory, copy: SharedMemory) {
        if let Some(saved) = &mut self.open {
            saved.insert(state.addr(), (state.clone(), copy));
        }
    }

    /// Returns each state, and the copy of its previous contents.
    pub(super) fn end(&mut self) -> Vec<(SharedMemory, SharedMemory)> {
        self.open.take().into_iter().flatten().map(|(_, saved)| saved).collect()
    }
}
