//! Steps: one generation of tensors each.

use std::{fmt, ops::Deref};

use tracing::span::EnteredSpan;

use crate::{Eager, Runtime, timeline};

/// One generation of tensors, and the capability to look at them.
///
/// Holds the runtime's borrow, and so does every tensor: `Runtime::step` cannot be called again while
/// one of them lives, which makes the use of an overwritten output a compile error. Has no work to do
/// at its end, so forgetting it is harmless.
pub struct Step<'s> {
    eager: Eager<'s>,
    _span: EnteredSpan,
}

impl<'s> Step<'s> {
    pub(crate) fn new(rt: &'s Runtime) -> Self {
        Self { eager: Eager { rt }, _span: timeline::span!("step").entered() }
    }
}

impl<'s> Deref for Step<'s> {
    type Target = Eager<'s>;

    fn deref(&self) -> &Eager<'s> {
        &self.eager
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}
