//! Operations that are made of others.

use crate::Result;

/// Runs the body of an operation that calls others: their errors name it, since it is what the user called.
pub(super) fn composed<T>(op: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    body().map_err(|error| error.of_operation(op))
}
