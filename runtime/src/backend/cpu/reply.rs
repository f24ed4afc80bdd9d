//! An answer from the worker to one caller.

use crate::{
    Error, Result,
    backend::PendingBytes,
    base::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

type Answer = Result<Vec<u8>>;

#[derive(Default)]
struct Slot {
    answer: Mutex<Option<Answer>>,
    changed: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, answer: Answer) {
        self.lock().get_or_insert(answer);
        self.changed.notify_one();
    }
}

/// The side that replies. If it is dropped without a reply, the device is lost, so that nobody waits
/// indefinitely.
pub(super) struct Reply(Arc<Slot>);

/// The side that waits.
pub(super) struct Pending(Arc<Slot>);

/// Both sides of one answer.
pub(super) fn reply() -> (Reply, Pending) {
    let slot = Arc::<Slot>::default();
    (Reply(slot.clone()), Pending(slot))
}

impl Reply {
    pub(super) fn send(self, answer: Answer) {
        self.0.set(answer);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // After `send` nobody can observe this: the first reply is kept, and once it is taken nobody waits.
        self.0.set(Err(Error::ContextLost {
            device: super::errors::NAME.into(),
            why: "its runtime was dropped before this was done".into(),
        }));
    }
}

impl PendingBytes for Pending {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        let mut slot = self.0.lock();
        loop {
            match slot.take() {
                Some(answer) => return answer,
                None => slot = self.0.changed.wait(slot).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.0.lock().is_some()
    }
}
