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

impl Context {
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
