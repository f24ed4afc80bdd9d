//! The current run, and the state that belongs to it.

use std::{
    mem,
    sync::{Arc, atomic::AtomicU64},
};

use super::{nesting::Nesting, run::Run, snapshots::Snapshots};
use crate::{
    Error, Result,
    backend::SharedMemory,
    memory::{Liveness, Memory, SlotId},
    program::Command,
    value::{
        entry::{Entries, Entry},
        raw::RawTensor,
    },
};

/// What runs, and where its commands go.
#[derive(Debug)]
enum Running {
    /// Commands are those of a recording.
    Recorded(Run),
    /// Commands run at once, unless a conditional node is open.
    Direct {
        /// `None` while nothing runs but eager code.
        run: Option<Run>,
        /// What conditional nodes do, until the outermost one ends and it is run. `None` while none is open.
        described: Option<Vec<Command>>,
    },
}

impl Default for Running {
    fn default() -> Self {
        Self::Direct { run: None, described: None }
    }
}

impl Running {
    /// What conditional nodes do that are not recorded, if one is open.
    fn described(&self) -> Option<&Vec<Command>> {
        match self {
            Self::Recorded(_) => None,
            Self::Direct { described, .. } => described.as_ref(),
        }
    }
}

/// The current run, and the state that belongs to it.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    running: Running,
    nesting: Nesting,
    snapshots: Snapshots,
    /// Lists that were decoded, for the next outputs.
    free_entries: Vec<Entries>,
}

impl Recorder {
    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.running {
            Running::Recorded(run) => Some(run),
            Running::Direct { run, .. } => run.as_ref(),
        }
    }

    /// The body that runs depends on which of its live-ins are in one place.
    pub(super) fn compares_memory(&self) {
        if let Some(run) = self.run() {
            run.asked.set(true);
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.running {
            Running::Recorded(run) => Some(run),
            Running::Direct { run, .. } => run.as_mut(),
        }
    }

    /// A body begins to run. Bodies do not nest.
    pub(super) fn begin(&mut self, run: Run) {
        self.running = match run.recording() {
            Some(_) => Running::Recorded(run),
            None => Running::Direct { run: Some(run), described: None },
        };
    }

    /// Takes the run out: it ends, or is aborted.
    pub(crate) fn take_run(&mut self) -> Option<Run> {
        match mem::take(&mut self.running) {
            Running::Recorded(run) => Some(run),
            Running::Direct { run, .. } => run,
        }
    }

    /// Returns whether a body is running.
    pub(crate) fn is_running(&self) -> bool {
        self.run().is_some()
    }

    /// Returns whether an operation would be recorded now.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(self.running, Running::Recorded(_))
    }

    /// Returns whether the tensors that a body makes are placed in the pool.
    pub(crate) fn is_pooled(&self) -> bool {
        self.run().is_some_and(|run| !run.is_audit())
    }

    /// A step begins: whatever was left open is closed.
    pub(crate) fn begin_step(&mut self) {
        self.nesting.clear();
        self.undo_description(None);
    }

    /// A conditional node begins: unless it is recorded, what it does is described from here on, until the outermost
    /// one ends.
    pub(super) fn describe(&mut self) {
        if let Running::Direct { described, .. } = &mut self.running {
            described.get_or_insert_default();
        }
    }

    /// Returns whether commands are described instead of run.
    pub(super) fn is_describing(&self) -> bool {
        self.running.described().is_some()
    }

    /// Returns the number of commands that are described, if a node that is not recorded is open.
    pub(super) fn described_len(&self) -> Option<usize> {
        self.running.described().map(Vec::len)
    }

    /// Takes what was described, to run it.
    pub(super) fn take_description(&mut self) -> Option<Vec<Command>> {
        match &mut self.running {
            Running::Recorded(_) => None,
            Running::Direct { described, .. } => described.take(),
        }
    }

    /// Goes back to an earlier [`described_len`](Self::described_len).
    pub(super) fn undo_description(&mut self, len: Option<usize>) {
        if let Running::Direct { described, .. } = &mut self.running {
            match (&mut *described, len) {
                (Some(commands), Some(len)) => commands.truncate(len),
                _ => *described = None,
            }
        }
    }

    /// Writes a command down where a recording or a description is made. Returns it if it is to run now.
    pub(super) fn write_down(&mut self, command: Command) -> Option<Command> {
        let commands = match &mut self.running {
            Running::Recorded(run) => {
                if let Some(recording) = run.recording_mut() {
                    recording.log.push(command);
                }
                return None;
            }
            Running::Direct { described, .. } => described,
        };
        match commands {
            Some(commands) => commands.push(command),
            None => return Some(command),
        }
        None
    }

    /// The forks and conditional nodes that are open.
    pub(super) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    pub(super) fn nesting_mut(&mut self) -> &mut Nesting {
        &mut self.nesting
    }

    /// From here on, state is saved before it is written.
    pub(crate) fn begin_snapshot(&mut self) {
        self.snapshots.begin();
    }

    /// Returns the number of times that state began to be saved, which goes on counting.
    pub(crate) fn captures_ahead(&self) -> Arc<AtomicU64> {
        self.snapshots.begun()
    }

    /// Returns whether state is saved before it is written.
    #[inline]
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshots.is_open()
    }

    /// Returns whether a state is yet to be saved before it is written.
    pub(super) fn is_unsaved(&self, state: &SharedMemory) -> bool {
        self.snapshots.lacks(state)
    }

    /// A copy was made of a state.
    pub(super) fn saved(&mut self, state: &SharedMemory, copy: SharedMemory) {
        self.snapshots.add(state, copy);
    }

    /// Ends saving. Returns the states and the copies of what they held.
    pub(super) fn end_snapshot(&mut self) -> Vec<(SharedMemory, SharedMemory)> {
        self.snapshots.end()
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
                if let Some(recording) = self.run().and_then(Run::recording) {
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
