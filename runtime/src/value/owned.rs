//! Device memory with an identity.

use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{memory::SharedMemory, retire::RetireQueue};

/// A number that is never given twice in a process.
pub(crate) fn next_id() -> u64 {
    next_number().get()
}

fn next_number() -> NonZeroU64 {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    NonZeroU64::MIN.saturating_add(GIVEN.fetch_add(1, Ordering::Relaxed))
}

/// Identity of what recordings are made with, and go with: owned memory, or a graph object. Never given twice, so a
/// recording cannot mistake a new parameter for the old one whose address it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerId(NonZeroU64);

impl OwnerId {
    pub(crate) fn new() -> Self {
        Self(next_number())
    }

    pub(crate) fn get(self) -> u64 {
        self.0.get()
    }
}

/// A graph object: its identity, and the name of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) id: OwnerId,
    pub(crate) name: &'static str,
}

/// The graph object of a runtime that no call of one has entered yet. No other has its identity.
impl Default for Caller {
    fn default() -> Self {
        Self { id: OwnerId::new(), name: "" }
    }
}

/// Device memory with an identity.
pub(crate) struct Owned {
    pub(crate) id: OwnerId,
    pub(crate) runtime: u64,
    pub(crate) memory: SharedMemory,
    /// The id and name of the graph object that owns the buffer; `None` for the user's memory.
    pub(crate) graph: Option<Caller>,
    /// Set if no operation writes it: kernels may read it before earlier ones have ended. (`record/overwrite.rs` does, between
    /// kernels.)
    pub(crate) is_constant: bool,
    /// Set if it is a part of a mapped file, which nothing writes at all.
    pub(crate) is_mapped: bool,
    retire: Arc<RetireQueue<OwnerId>>,
}

impl Owned {
    pub(crate) fn new(
        runtime: u64,
        memory: SharedMemory,
        graph: Option<Caller>,
        retire: Arc<RetireQueue<OwnerId>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: OwnerId::new(),
            runtime,
            memory,
            graph,
            is_constant: false,
            is_mapped: false,
            retire,
        })
    }

    /// Memory of the user that no operation writes.
    pub(crate) fn constant(
        runtime: u64,
        memory: SharedMemory,
        retire: Arc<RetireQueue<OwnerId>>,
    ) -> Arc<Self> {
        Self::constant_of(runtime, memory, false, retire)
    }

    /// A part of a mapped file.
    pub(crate) fn mapped(runtime: u64, memory: SharedMemory, retire: Arc<RetireQueue<OwnerId>>) -> Arc<Self> {
        Self::constant_of(runtime, memory, true, retire)
    }

    fn constant_of(
        runtime: u64,
        memory: SharedMemory,
        is_mapped: bool,
        retire: Arc<RetireQueue<OwnerId>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: OwnerId::new(),
            runtime,
            memory,
            graph: None,
            is_constant: true,
            is_mapped,
            retire,
        })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // This can happen on any thread, at any time: only the runtime may change the recordings made with
        // it.
        self.retire.push(self.id);
    }
}
