//! Device memory with an identity.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{memory::SharedMemory, retire::RetireQueue};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Returns a new identity of owned memory. Identities are never reused, so a recording cannot mistake a new
/// parameter for an old one at the same address.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Device memory with an identity.
pub(crate) struct Owned {
    pub(crate) id: u64,
    pub(crate) runtime: u64,
    pub(crate) memory: SharedMemory,
    /// The id and name of the graph object that owns the buffer; `None` for the user's memory.
    pub(crate) function: Option<(u64, &'static str)>,
    retire: Arc<RetireQueue>,
}

impl Owned {
    pub(crate) fn new(
        runtime: u64,
        memory: SharedMemory,
        function: Option<(u64, &'static str)>,
        retire: Arc<RetireQueue>,
    ) -> Arc<Self> {
        Arc::new(Self { id: next_id(), runtime, memory, function, retire })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // This can happen on any thread, at any time: only the runtime may change the recordings made with
        // it.
        self.retire.push(self.id);
    }
}
