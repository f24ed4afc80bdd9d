//! Values of users, whose destructors run wherever the runtime lets go of them.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// A value of a user's. A panic of its destructor, which the panic hook has reported, ends here: it may run in the middle of
/// an eviction, or on the thread of a stream.
#[derive(Debug)]
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            // Its drop may panic again.
            mem::forget(payload);
        }
    }
}
