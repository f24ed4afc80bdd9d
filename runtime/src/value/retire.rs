//! From whoever drops owned memory to the runtime that recorded with it.

use crate::sync::{Mutex, PoisonError};

/// Ids of owned memory whose last handle went; the runtime evicts their recordings at the next step.
#[derive(Debug, Default)]
pub(crate) struct RetireQueue(Mutex<Vec<u64>>);

impl RetireQueue {
    /// On any thread, at any time.
    pub(crate) fn push(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Everything that was pushed and not taken yet.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
