//! The current run, and the state that belongs to it.

use std::sync::{Arc, atomic::AtomicU64};

use super::{nesting::Nesting, run::Run, state_snapshot::StateSnapshot};
use crate::{
    Error, Result,
    memory::{Liveness, Memory, SlotId},
    program::Command,
    value::{
        entry::{Entries, Entry},
        raw::RawTensor,
    },
};

/// The current run, and the state that belongs to it.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// `None` while nothing runs but eager code.
    pub(super) run: Option<Run>,
    pub(super) nesting: Nesting,
    /// The commands of conditional nodes that are not recorded, until the outermost one ends and it is run.
    pub(super) described: Option<Vec<Command>>,
    /// While `capture_all` runs.
    pub(super) snapshot: Option<StateSnapshot>,
    /// The number of times that `capture_all` began, for readers of logs, whose memory no snapshot saves.
    pub(super) captures_ahead: Arc<AtomicU64>,
    /// Lists that were decoded, for the next outputs.
    free_entries: Vec<Entries>,
}

impl Recorder {
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The body that runs depends on which of its live-ins are in one place.
    pub(super) fn compares_memory(&self) {
        if let Some(run) = self.run() {
            run.asked.set(true);
        }
    }

    /// The body that runs depends on which of its generators are one.
    pub(crate) fn compares_generators(&self) {
        if let Some(run) = self.run() {
            run.compares_generators.set(true);
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    /// A body begins to run. Bodies do not nest.
    pub(super) fn begin(&mut self, run: Run) {
        self.run = Some(run);
    }

    /// Takes the run out: it ends, or is aborted.
    pub(crate) fn take_run(&mut self) -> Option<Run> {
        self.run.take()
    }

    /// Returns whether a body is running.
    pub(crate) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Returns whether an operation would be recorded now.
    pub(crate) fn is_recording(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.recording().is_some())
    }

    /// Returns whether the tensors that a body makes are placed in the pool.
    pub(crate) fn is_pooled(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_audit())
    }

    /// A step begins: whatever was left open is closed.
    pub(crate) fn begin_step(&mut self) {
        self.nesting.clear();
        self.described = None;
    }

    /// A tensor was made, by the running body of a conditional node if there is one.
    pub(crate) fn note_made(&mut self, id: SlotId) {
        self.nesting.note_made(id);
    }

    /// A list for outputs.
    #[inline]
    pub(crate) fn take_entries(&mut self) -> Entries {
        self.free_entries.pop().unwrap_or_default()
    }

    /// Takes back a list of outputs that was decoded.
    pub(crate) fn recycle(&mut self, mut entries: Entries) {
        /// More than are in use at the same time, unless calls are nested.
        const MOST_FREE: usize = 8;
        entries.clear();
        if self.free_entries.len() < MOST_FREE {
            self.free_entries.push(entries);
        }
    }

    /// Rejects a tensor whose memory may have been reused, and notes the use of others.
    ///
    /// # Errors
    /// Returns [`Error::UsedAfterLastUse`], [`Error::NeverComputed`]; and, of a view of a weight, [`Error::Asleep`] or
    /// [`Error::Discarded`].
    pub(crate) fn check_live(&self, memory: &Memory, op: &'static str, raw: &RawTensor) -> Result<()> {
        match memory.liveness(raw) {
            Liveness::Live(origin) => {
                self.note_use(raw.slot, origin);
                memory.check_weight(op, raw.addr)
            }
            Liveness::Freed { producer } => {
                if let Some(recording) = self.run.as_ref().and_then(Run::recording) {
                    recording.late_use.set(true);
                }
                Err(Error::UsedAfterLastUse { op, producer })
            }
            Liveness::Invalid => Err(Error::NeverComputed { op }),
        }
    }

    /// As [`check_live`](Self::check_live), for the tensors among outputs.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn check_outputs(&self, memory: &Memory, what: &'static str, outputs: &[Entry]) -> Result<()> {
        outputs.iter().try_for_each(|entry| match entry {
            Entry::Tensor(raw) => self.check_live(memory, what, raw),
            _ => Ok(()),
        })
    }
}
