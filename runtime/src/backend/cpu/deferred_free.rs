//! Memory whose last handle is gone, on its way to the worker, which frees it when nothing uses it any more.

use std::collections::VecDeque;

use crate::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Memory whose last handle is gone.
pub(super) struct DeferredFree {
    addr: u64,
    /// Free it when this many commands are done.
    after: u64,
}

/// What callers, droppers and the worker share.
#[derive(Default)]
pub(super) struct DeferredFrees {
    /// Commands sent so far, but those that only wake.
    sent: AtomicU64,
    retired: Mutex<Vec<DeferredFree>>,
    any: AtomicBool,
}

impl DeferredFrees {
    /// A command is about to be sent. Before the send: memory dropped in between waits for this command,
    /// not for one less.
    pub(super) fn sending(&self) {
        self.sent.fetch_add(1, Ordering::Release);
    }

    /// The block at `addr` may go when everything sent so far is done. From any thread. `true` when the
    /// worker must be woken, as it may have gone to sleep without seeing it.
    pub(super) fn retire(&self, addr: u64) -> bool {
        // The last handle's drop comes after the drops of its clones, and a thread that launched
        // with this memory had one: so its count of commands is seen here.
        let retired = DeferredFree { addr, after: self.sent.load(Ordering::Acquire) };
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
        !self.any.swap(true, Ordering::AcqRel)
    }

    /// Moves what was retired to the worker's own list.
    pub(super) fn collect(&self, mine: &mut VecDeque<DeferredFree>) {
        if self.any.load(Ordering::Relaxed) {
            // Cleared before the list is taken: what comes later sets it again.
            self.any.swap(false, Ordering::AcqRel);
            let mut new = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
            mine.extend(new.drain(..));
        }
    }
}

/// The next block of the worker's list that may go when `done` commands are.
///
/// In the order of the drops, which is almost that of `after`: a block out of order goes a little later
/// than it could.
pub(super) fn due(mine: &mut VecDeque<DeferredFree>, done: u64) -> Option<u64> {
    mine.front().is_some_and(|first| first.after <= done).then(|| mine.pop_front().map(|r| r.addr))?
}
