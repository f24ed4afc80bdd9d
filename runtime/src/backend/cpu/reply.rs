//! An answer from the worker to one caller.

use crate::{
    Error, Result,
    base::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

struct Slot<T> {
    answer: Mutex<Option<Result<T>>>,
    changed: Condvar,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Option<Result<T>>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, answer: Result<T>) {
        self.lock().get_or_insert(answer);
        self.changed.notify_one();
    }
}

/// The side that replies. If it is dropped without a reply, the device is lost, so that nobody waits
/// indefinitely.
pub(super) struct Reply<T>(Arc<Slot<T>>);

/// The side that waits.
pub(super) struct Pending<T>(Arc<Slot<T>>);

/// Both sides of one answer.
pub(super) fn reply<T>() -> (Reply<T>, Pending<T>) {
    let slot = Arc::new(Slot { answer: Mutex::new(None), changed: Condvar::new() });
    (Reply(slot.clone()), Pending(slot))
}

impl<T> Reply<T> {
    pub(super) fn send(self, answer: Result<T>) {
        self.0.set(answer);
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        // After `send` nobody can observe this: the first reply is kept, and once it is taken nobody waits.
        self.0.set(Err(Error::ContextLost {
            device: super::errors::NAME.into(),
            reason: "its runtime was dropped before this was done".into(),
        }));
    }
}

impl<T> Pending<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// Returns the error that was sent, or [`Error::ContextLost`] if nothing was.
    pub(super) fn wait(self) -> Result<T> {
        let mut slot = self.0.lock();
        loop {
            match slot.take() {
                Some(answer) => return answer,
                None => slot = self.0.changed.wait(slot).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Returns whether [`wait`](Self::wait) would return immediately.
    pub(super) fn is_ready(&self) -> bool {
        self.0.lock().is_some()
    }
}
