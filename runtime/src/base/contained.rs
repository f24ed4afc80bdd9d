//! Values of users, whose destructors run wherever the runtime lets go of them.

use std::{
    any::Any,
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

    /// Returns the value, which is there until this is dropped.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
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

/// Returns the message of a panic.
pub(crate) fn what_panicked(panic: Box<dyn Any + Send>) -> String {
    let said = panic.downcast::<String>().map(|said| *said);
    let said = said.or_else(|panic| panic.downcast::<&'static str>().map(|said| said.to_string()));
    let said = said.unwrap_or_else(|payload| {
        // A value of the user's, whose drop may panic again.
        mem::forget(payload);
        "without a message".into()
    });
    format!("it panicked: {said}")
}
