//! The queue from the threads that drop owned memory to the runtime that recorded with it.

use crate::sync::{Mutex, PoisonError};

/// The ids of owned memory whose last handle was dropped; the runtime evicts their recordings at the next
/// step.
#[derive(Debug, Default)]
pub(crate) struct RetireQueue(Mutex<Vec<u64>>);

impl RetireQueue {
    /// Adds an id. Can be called on any thread, at any time.
    pub(crate) fn push(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Removes and returns all ids.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
