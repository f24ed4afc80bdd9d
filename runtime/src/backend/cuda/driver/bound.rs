//! The calling thread's current context, and restoring it.
//!
//! The current context is state of the thread that is shared by every library on it: a library that uses the
//! runtime API works on the GPU whose context is current. So all code that makes ours current restores the
//! previous one.

use super::{
    Context,
    table::Table,
    types::{CUresult, Handle},
};
use crate::{Error, Result};

/// A context that is current on this thread while this is alive. Afterwards the previous one is current
/// again, even if there was none.
#[must_use = "the context is current only while this lives"]
pub(crate) struct Bound {
    _restore: Option<Restore<DriverCalls>>,
}

/// The context to be made current again.
struct Restore<C: Calls> {
    calls: C,
    before: Handle,
}

impl<C: Calls> Drop for Restore<C> {
    fn drop(&mut self) {
        // It was current, so it can be made current again, unless somebody has destroyed it since: then
        // nothing can be restored.
        let _ = self.calls.set(self.before);
    }
}

/// A context that is current on a thread that had none, while a call of a graph runs. Code of the caller runs meanwhile: if it
/// makes another context current, that one stays, as it would without this.
#[must_use = "the context is current only while this lives"]
pub(crate) struct BoundForCall {
    _unset: Unset<DriverCalls>,
}

/// The context that is to be current no longer.
struct Unset<C: Calls> {
    calls: C,
    ours: Handle,
}

impl<C: Calls> Drop for Unset<C> {
    fn drop(&mut self) {
        if self.calls.get() == (0, self.ours) {
            // There is always none to go back to.
            let _ = self.calls.set(std::ptr::null_mut());
        }
    }
}

/// The two calls of the driver that this is about.
trait Calls: Copy {
    fn get(self) -> (CUresult, Handle);
    fn set(self, context: Handle) -> CUresult;
}

#[derive(Clone, Copy)]
struct DriverCalls(&'static Table);

impl Calls for DriverCalls {
    fn get(self) -> (CUresult, Handle) {
        let mut current = std::ptr::null_mut();
        // SAFETY: one handle is written.
        let code = unsafe { (self.0.ctx_get)(&mut current) };
        (code, current)
    }

    fn set(self, context: Handle) -> CUresult {
        // SAFETY: a context that is retained, or one that was current on this thread, or null, which is none.
        unsafe { (self.0.ctx_set)(context) }
    }
}

/// Makes `ours` current. Asks first: where it is current already, nothing is to be done, now or later.
fn enter<C: Calls>(calls: C, ours: Handle) -> Result<Option<Restore<C>>, CUresult> {
    let (code, before) = calls.get();
    if code == 0 && before == ours {
        return Ok(None);
    }
    match calls.set(ours) {
        0 if code == 0 => Ok(Some(Restore { calls, before })),
        // The previous context is unknown, so nothing can be restored.
        0 => Ok(None),
        failed => Err(failed),
    }
}

/// Makes `ours` current on a thread that has none. Where it cannot be, the launches of the call report why.
fn enter_call<C: Calls>(calls: C, ours: Handle) -> Option<Unset<C>> {
    let has_none = calls.get() == (0, std::ptr::null_mut());
    // Not `then_some`: one that is made is also dropped.
    (has_none && calls.set(ours) == 0).then(|| Unset { calls, ours })
}

impl Context {
    /// Makes this context current for a call of a graph on a thread that has none. Each launch of the call would otherwise set
    /// and unset it, which takes a tenth of the host's time. Threads that have a context keep it: code of the caller that runs
    /// in between may rely on that.
    pub(crate) fn bind_for_call(&self) -> Option<BoundForCall> {
        let unset = enter_call(DriverCalls(self.table), self.raw())?;
        Some(BoundForCall { _unset: unset })
    }

    /// Makes this context current on the calling thread until the guard goes; cheap where it is already.
    ///
    /// # Errors
    /// Returns [`Error::ContextLost`].
    pub(crate) fn bind(&self) -> Result<Bound> {
        if let Some(reason) = self.lost() {
            return Err(Error::ContextLost { device: self.name().to_owned(), reason: reason.to_owned() });
        }
        self.bind_unasked().map_err(|code| self.failed("cuCtxSetCurrent", code))
    }

    /// As [`bind`](Self::bind), whether or not it is known to be lost.
    pub(super) fn bind_unasked(&self) -> Result<Bound, CUresult> {
        let restore = enter(DriverCalls(self.table), self.raw())?;
        Ok(Bound { _restore: restore })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A thread's current context, and how often it was set.
    #[derive(Default)]
    struct Thread {
        current: usize,
        sets: usize,
        fails: bool,
    }

    #[derive(Clone, Copy)]
    struct Fake<'a>(&'a RefCell<Thread>);

    impl Calls for Fake<'_> {
        fn get(self) -> (CUresult, Handle) {
            (0, handle(self.0.borrow().current))
        }
        fn set(self, context: Handle) -> CUresult {
            let mut thread = self.0.borrow_mut();
            if thread.fails {
                return 201;
            }
            (thread.current, thread.sets) = (context.addr(), thread.sets + 1);
            0
        }
    }

    fn handle(at: usize) -> Handle {
        std::ptr::without_provenance_mut(at)
    }

    #[test]
    fn what_was_current_is_current_again() {
        for before in [0, 64] {
            let thread = RefCell::new(Thread { current: before, ..Thread::default() });
            {
                let _outer = enter(Fake(&thread), handle(8)).unwrap();
                assert_eq!(thread.borrow().current, 8);
                let _inner = enter(Fake(&thread), handle(8)).unwrap();
                assert_eq!((thread.borrow().current, thread.borrow().sets), (8, 1), "nested: asked only");
            }
            assert_eq!((thread.borrow().current, thread.borrow().sets), (before, 2));
        }
    }

    #[test]
    fn a_call_binds_a_thread_that_has_no_context_once() {
        let thread = RefCell::new(Thread::default());
        {
            let _call = enter_call(Fake(&thread), handle(8)).unwrap();
            for _ in 0..3 {
                drop(enter(Fake(&thread), handle(8)).unwrap());
            }
            assert_eq!((thread.borrow().current, thread.borrow().sets), (8, 1));
        }
        assert_eq!((thread.borrow().current, thread.borrow().sets), (0, 2));
        // What code of the caller makes current meanwhile stays.
        {
            let _call = enter_call(Fake(&thread), handle(8)).unwrap();
            Fake(&thread).set(handle(64));
            drop(enter(Fake(&thread), handle(8)).unwrap());
        }
        assert_eq!(thread.borrow().current, 64);
        // And what was current before is current in between.
        assert!(enter_call(Fake(&thread), handle(8)).is_none());
        assert_eq!(thread.borrow().current, 64);
        thread.borrow_mut().current = 8;
        assert!(enter_call(Fake(&thread), handle(8)).is_none());
        assert_eq!(thread.borrow().current, 8, "ours was current before");
        thread.borrow_mut().current = 0;
        thread.borrow_mut().fails = true;
        assert!(enter_call(Fake(&thread), handle(8)).is_none());
    }

    #[test]
    fn nothing_is_set_where_ours_is_current() {
        let thread = RefCell::new(Thread { current: 8, ..Thread::default() });
        drop(enter(Fake(&thread), handle(8)).unwrap());
        assert_eq!((thread.borrow().current, thread.borrow().sets), (8, 0));
    }

    #[test]
    fn a_context_that_cannot_be_set_changes_nothing() {
        let thread = RefCell::new(Thread { current: 64, sets: 0, fails: true });
        assert_eq!(enter(Fake(&thread), handle(8)).err(), Some(201));
        assert_eq!(thread.borrow().current, 64);
    }
}
