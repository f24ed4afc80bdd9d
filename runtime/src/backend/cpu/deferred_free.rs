//! Memory whose last handle was dropped, on its way to the worker, which frees it when nothing uses it any
//! more.

use std::collections::VecDeque;

use crate::base::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Memory whose last handle was dropped.
pub(super) struct DeferredFree {
    addr: u64,
    /// Free it when this many commands are done.
    after: u64,
}

/// A value in cache lines of its own: the caller writes it for every command, and the worker looks at what would lie beside it
/// after each one. (Two lines, since processors fetch pairs of them.)
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// The state shared by callers, droppers and the worker.
#[derive(Default)]
pub(super) struct DeferredFrees {
    /// Commands sent so far, but those that only wake.
    sent: Apart<AtomicU64>,
    retired: Mutex<Vec<DeferredFree>>,
    any: AtomicBool,
}

impl DeferredFrees {
    /// A command is about to be sent. Before the send: memory dropped in between waits for this command,
    /// not for one less.
    pub(super) fn sending(&self) {
        self.sent.0.fetch_add(1, Ordering::Release);
    }

    /// Lets the block at `addr` be freed when everything sent so far is done. Can be called on any thread.
    /// Returns `true` if the worker must be woken, as it may have gone to sleep without seeing it.
    pub(super) fn retire(&self, addr: u64) -> bool {
        // The last handle's drop comes after the drops of its clones, and a thread that launched
        // with this memory had one: so its count of commands is seen here.
        let retired = DeferredFree { addr, after: self.sent.0.load(Ordering::Acquire) };
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
        !self.any.swap(true, Ordering::AcqRel)
    }

    /// Moves the retired blocks to the worker's own list.
    pub(super) fn collect(&self, mine: &mut VecDeque<DeferredFree>) {
        if self.any.load(Ordering::Relaxed) {
            // Cleared before the list is taken: blocks added later set it again.
            self.any.swap(false, Ordering::AcqRel);
            let mut new = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
            mine.extend(new.drain(..));
        }
    }
}

/// The next block of the worker's list that may go when `done` commands are.
///
/// In the order of the drops, which is almost that of `after`: a block out of order is freed a little later
/// than possible.
pub(super) fn due(mine: &mut VecDeque<DeferredFree>, done: u64) -> Option<u64> {
    mine.front().is_some_and(|first| first.after <= done).then(|| mine.pop_front().map(|r| r.addr))?
}
