//! The queue from the threads that drop owned memory to the runtime that recorded with it.

use crate::base::sync::{Mutex, PoisonError};

/// The ids of owned memory whose last handle was dropped; the runtime evicts their recordings at the next
/// step.
#[derive(Debug)]
pub(crate) struct RetireQueue<I>(Mutex<Vec<I>>);

impl<I> Default for RetireQueue<I> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<I> RetireQueue<I> {
    /// Adds an id. Can be called on any thread, at any time.
    pub(crate) fn push(&self, id: I) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Removes and returns all ids.
    pub(crate) fn take(&self) -> Vec<I> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
