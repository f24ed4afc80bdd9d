//! Steps: one generation of tensors each.

use std::{fmt, ops::Deref};

use tracing::span::EnteredSpan;

use crate::{Eager, Error, Result, Runtime, memory::Live, observe::timeline};

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

impl Live {
    /// Of the runtime of a step, now.
    pub fn in_step(step: &Step<'_>) -> Self {
        Self::of(step.scope().rt)
    }
}

impl<'s> Deref for Step<'s> {
    type Target = Eager<'s>;

    fn deref(&self) -> &Eager<'s> {
        &self.eager
    }
}

impl Runtime {
    /// Starts a step: a generation of tensors. All tensors of the previous step have been dropped by then.
    ///
    /// Recordings of parameters that were dropped in the meantime are evicted here.
    ///
    /// # Errors
    /// A failure of the device that no earlier call could report.
    pub fn step(&mut self) -> Result<Step<'_>> {
        // Saving belongs to one `capture_all`, which is over, however it ended.
        self.core.get_mut().launcher().restore_snapshot_later();
        self.saving_step()
    }

    /// A step of `capture_all`, which goes on saving.
    pub(crate) fn saving_step(&mut self) -> Result<Step<'_>> {
        self.start_step(true)
    }

    /// A step. What waits to be used again waits for steps that count; those of a plan count for what it captures.
    pub(crate) fn start_step(&mut self, counts: bool) -> Result<Step<'_>> {
        let core = self.core.get_mut();
        let kept_counts = counts && !core.estimate.is_dry();
        // First: what is freed here has recordings to evict.
        core.memory.persistent_mut().begin_step(self.dropped.take(), kept_counts);
        if counts {
            core.tree.begin_step();
        }
        let retired = self.retire.take();
        self.graphs.set(false);
        self.switches.get_mut().end_step();
        self.batches.get_mut().end_step();
        self.tell_slices();
        let begun = self.core.get_mut().begin_step(&retired);
        let mut unreported = Unreported { rt: self, error: begun.err() };
        unreported.rt.tell_hooks();
        match unreported.error.take() {
            Some(error) => Err(error),
            None => {
                drop(unreported);
                Ok(Step::new(self))
            }
        }
    }
}

/// An error that its call may not come to report, since a hook panics: the next call that can reports it.
struct Unreported<'r> {
    rt: &'r Runtime,
    error: Option<Error>,
}

impl Drop for Unreported<'_> {
    fn drop(&mut self) {
        if let Some(error) = self.error.take() {
            self.rt.core.borrow_mut().stream.defer(error);
        }
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
        rt.core.borrow_mut().begin_lending()?;
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
        self.eager.rt.core.borrow_mut().memory.end_lending();
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
