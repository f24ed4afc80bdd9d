//! Steps: each is one generation of tensors.

use std::{fmt, ops::Deref};

use tracing::span::EnteredSpan;

use crate::{Eager, Result, Runtime, memory::Live};

/// One generation of tensors, and the capability to read them.
///
/// It borrows the runtime, as does every tensor: `Runtime::step` cannot be called again while one of them is
/// alive, so using an overwritten output is a compile error. Nothing happens at its end, so forgetting it is
/// harmless.
pub struct Step<'s> {
    eager: Eager<'s>,
    _span: EnteredSpan,
}

impl<'s> Step<'s> {
    fn new(rt: &'s Runtime, span: EnteredSpan) -> Self {
        Self { eager: Eager { rt }, _span: span }
    }
}

impl Live {
    /// Returns the current counters of a step's runtime.
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
    /// Starts a step, which is a generation of tensors. At this point, all tensors of the previous step have
    /// been dropped.
    ///
    /// Recordings of parameters that have been dropped in the meantime are evicted here.
    ///
    /// # Errors
    /// Returns a failure of the device that no earlier call could report.
    pub fn step(&mut self) -> Result<Step<'_>> {
        let span = self.begin_counted_step()?;
        Ok(Step::new(self, span))
    }

    /// Starts a step of `capture_all`, which continues to save state.
    pub(crate) fn saving_step(&mut self) -> Result<Step<'_>> {
        let span = self.begin_saving_step()?;
        Ok(Step::new(self, span))
    }
}

impl Step<'_> {
    /// Lends the memory of the pool, which is idle between calls, to eager operations: their allocations are
    /// made there as far as they fit, instead of growing the eager arena.
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
    ///     let pool = step.borrow_pool()?;
    ///     graph.call(step, &[1.0])?; // the pool is borrowed
    ///     drop(pool);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// When it is dropped, the tensors in it become invalid
    /// ([`Error::NeverComputed`](crate::Error::NeverComputed)): read or [keep](Eager::keep) them before. A
    /// forgotten one ends with the next call.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment), and
    /// [`Error::NestedCall`](crate::Error::NestedCall) inside a call.
    pub fn borrow_pool(&mut self) -> Result<BorrowedPool<'_>> {
        let rt = self.eager.rt;
        rt.core.borrow_mut().begin_lending()?;
        Ok(BorrowedPool { eager: Eager { rt } })
    }
}

/// The idle pool, borrowed for eager operations; returned by [`Step::borrow_pool`].
pub struct BorrowedPool<'a> {
    eager: Eager<'a>,
}

impl<'a> Deref for BorrowedPool<'a> {
    type Target = Eager<'a>;

    fn deref(&self) -> &Eager<'a> {
        &self.eager
    }
}

impl Drop for BorrowedPool<'_> {
    fn drop(&mut self) {
        self.eager.rt.core.borrow_mut().memory.end_lending();
    }
}

impl fmt::Debug for BorrowedPool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BorrowedPool")
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}
