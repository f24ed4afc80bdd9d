//! Resources released by handles, until the backend frees them: in stream order, and never during a capture.

use crate::base::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// A list that any thread adds to and the backend empties, as long as there is one.
#[derive(Debug)]
pub(super) struct DeferredFrees<T> {
    list: Mutex<Vec<T>>,
    any: AtomicBool,
    /// Set once the backend was dropped: nothing captures on the stream any more.
    closed: AtomicBool,
}

impl<T> DeferredFrees<T> {
    pub(super) fn new() -> Self {
        Self { list: Mutex::new(Vec::new()), any: AtomicBool::new(false), closed: AtomicBool::new(false) }
    }

    /// Adds something; can be called on any thread. Returns `true` if the backend was dropped, and the caller
    /// must free the contents of the list.
    pub(super) fn add(&self, what: T) -> bool {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        self.any.store(true, Ordering::Release);
        // The list's lock orders this after `close` if the last `take` came before the push.
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether there is anything to take: cheap, for every call of the backend.
    pub(super) fn is_waiting(&self) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        // Cleared before the list is taken: anything added later sets it again.
        self.any.store(false, Ordering::Release);
        true
    }

    /// Everything that was added and not taken yet.
    pub(super) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks the backend as dropped. Everything that was added before is in the list now, or its adder frees
    /// it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
