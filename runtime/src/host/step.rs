//! Steps: one generation of tensors each.

use std::{fmt, ops::Deref};

use tracing::span::EnteredSpan;

use crate::{Eager, Result, Runtime, observe::timeline};

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

impl Step<'_> {
    /// Lends the memory of the pool, which is idle between calls, to eager operations: what they allocate goes
    /// there, as far as it fits, instead of making the eager arena larger.
    ///
    /// The step is borrowed, so no call can be made meanwhile:
    ///
    /// ```compile_fail,E0502
    /// use graphable::prelude::*;
    ///
    /// #[graphable]
    /// fn double(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ///     ops::scale(x, 2.0)
    /// }
    ///
    /// fn run(graph: &DoubleGraph, step: &mut Step<'_>) -> Result<()> {
    ///     let scratch = step.scratch()?;
    ///     graph.call(step, &[1.0])?; // the pool is borrowed
    ///     drop(scratch);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// At its end tensors that it holds are void ([`Error::NeverComputed`](crate::Error::NeverComputed)): read
    /// or [keep](Eager::keep) them before. One that is forgotten ends with the next call.
    ///
    /// # Errors
    /// [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment) and
    /// [`Error::NestedCall`](crate::Error::NestedCall) inside a call.
    pub fn scratch(&mut self) -> Result<Scratch<'_>> {
        let rt = self.eager.rt;
        rt.core.borrow_mut().begin_scratch()?;
        Ok(Scratch { eager: Eager { rt } })
    }
}

/// The idle pool, borrowed for eager operations; made by [`Step::scratch`].
pub struct Scratch<'a> {
    eager: Eager<'a>,
}

impl<'a> Deref for Scratch<'a> {
    type Target = Eager<'a>;

    fn deref(&self) -> &Eager<'a> {
        &self.eager
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        self.eager.rt.core.borrow_mut().end_scratch();
    }
}

impl fmt::Debug for Scratch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}
