//! The beginning of a step, which ends everything of the step before. Its outputs are freed by
//! `Memory::begin_step` (`memory/mod.rs`), those that were dropped earlier by their last handle (`memory/slots.rs`).

use tracing::span::EnteredSpan;

use crate::{Error, Result, Runtime, observe::timeline};

impl Runtime {
    /// Begins a step: [`step`](Self::step) without the capability to read its tensors. Returns its span, which ends
    /// when it is dropped.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn begin_counted_step(&mut self) -> Result<EnteredSpan> {
        // Saved state belongs to one `capture_all`, which has ended, in whatever way.
        self.core.get_mut().launcher().restore_snapshot_later();
        self.begin_saving_step()
    }

    /// Begins a step of `capture_all`, which continues to save state.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(crate) fn begin_saving_step(&mut self) -> Result<EnteredSpan> {
        self.begin_step(true)
    }

    /// Begins the step of the plan of an estimate, which does not count.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(super) fn begin_planned_step(&mut self) -> Result<EnteredSpan> {
        self.core.get_mut().launcher().restore_snapshot_later();
        self.begin_step(false)
    }

    /// Begins a step. Cached memory waits for steps that count; the steps of a plan count only for what it
    /// captures.
    fn begin_step(&mut self, counts: bool) -> Result<EnteredSpan> {
        let core = self.core.get_mut();
        let kept_counts = counts && !core.estimate.is_dry_run();
        // This comes first: what is freed here has recordings to evict.
        core.memory.persistent_mut().begin_step(self.dropped.take(), kept_counts);
        if counts {
            core.tree.begin_step();
        }
        let retired = self.retire.take();
        self.graphs.set(false);
        self.switches.get_mut().end_step();
        self.batches.get_mut().end_step();
        // Before memory of the last step is used again.
        let ended = self.end_views(0);
        self.tell_slices();
        let begun = self.core.get_mut().begin_step(&retired);
        let mut unreported = Unreported { rt: self, error: ended.and(begun).err() };
        unreported.rt.tell_hooks();
        unreported.error.take().map_or_else(|| Ok(timeline::step()), Err)
    }
}

/// An error that its call may be unable to report, because a hook panics: the next call that can report it
/// does.
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
