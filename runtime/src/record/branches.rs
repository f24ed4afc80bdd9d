//! Forks: branches of a segment, which a recording lets run side by side.
//!
//! While a fork is open, freed memory is not reused, except for blocks that the branch itself made: no branch
//! can then write where another still reads, and the blocks live at the join are the same whether the
//! branches ran one after the other (in warm-up) or in parallel (in a replay). Branches that share memory on
//! purpose, through state or a tensor passed in a cell, are rejected when the second one accesses it.

use super::{
    call::{CallState, Phase},
    fork::Fork,
    launch::Launcher,
};
use crate::{Result, backend::View, program::Command};

impl Launcher<'_> {
    /// Opens a fork. Returns false where there is nothing to record or to check, between calls.
    ///
    /// # Errors
    /// Returns [`Error::OutsideSegment`](crate::Error::OutsideSegment), and errors of the device.
    pub(crate) fn begin_fork(&mut self, call: &CallState) -> Result<bool> {
        call.may_operate("join")?;
        if call.phase() == Phase::Idle {
            return Ok(false);
        }
        let recorded = self.recorder.is_recording();
        if recorded {
            let opened = self.issue(Command::Fork);
            self.note_failure(opened)?;
        }
        self.recorder.nesting_mut().open_fork(Fork::new(recorded));
        Ok(true)
    }

    /// Starts branch `index` of the innermost fork.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn begin_branch(&mut self, index: usize) -> Result<()> {
        let Some(fork) = self.recorder.nesting_mut().top_fork() else { return Ok(()) };
        fork.begin_branch(index);
        if fork.is_recorded() {
            let begun = self.issue(Command::Branch(index));
            self.note_failure(begun)?;
        }
        Ok(())
    }

    /// Closes the innermost fork, whether its branches went well or not.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn end_fork(&mut self) -> Result<()> {
        let Some(fork) = self.recorder.nesting_mut().close_fork() else { return Ok(()) };
        // This comes first: poisoning below happens after all branches.
        let joined = if fork.is_recorded() { self.issue(Command::Join) } else { Ok(()) };
        for freed in fork.close() {
            self.free_block(freed.arena, freed.base, freed.bytes);
        }
        self.note_failure(joined)
    }

    /// Refuses an operation that branches of an open fork may not order in two ways.
    ///
    /// # Errors
    /// Returns [`Error::BranchesShare`](crate::Error::BranchesShare).
    pub(crate) fn check_branches(
        &mut self,
        op: &'static str,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        self.recorder.nesting_mut().check(op, inputs, outputs)
    }

    /// A body may ignore the error; its recording must fail nevertheless.
    pub(super) fn note_failure(&mut self, result: Result<()>) -> Result<()> {
        if let (Err(error), Some(run)) = (&result, self.recorder.run_mut()) {
            run.fail(error);
        }
        result
    }
}
