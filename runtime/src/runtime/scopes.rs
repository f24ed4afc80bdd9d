//! What scopes say of the calls within them: their batch, and whether graphs are on.

use crate::{BatchDescriptor, ModeSet};

/// What is said of the calls of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) batch: BatchDescriptor,
    pub(crate) allowed: ModeSet,
    /// The calls are captures ahead of time.
    pub(crate) ahead: bool,
}

/// The batches that are said now, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    next: u64,
    said: Vec<(u64, Said)>,
    /// What `capture_all` says, over all of its steps.
    capture: Option<Said>,
}

impl Batches {
    /// A new step has begun: what a forgotten guard said ends with its step.
    pub(crate) fn end_step(&mut self) {
        self.said.clear();
    }

    /// Adds what a scope says of its batch.
    pub(crate) fn push(&mut self, said: Said) -> u64 {
        self.next += 1;
        self.said.push((self.next, said));
        self.next
    }

    /// Allows these modes alone in that scope.
    pub(crate) fn allow(&mut self, id: u64, modes: ModeSet) {
        if let Some((_, said)) = self.said.iter_mut().find(|(other, _)| *other == id) {
            said.allowed = modes;
        }
    }

    /// Ends that scope.
    pub(crate) fn remove(&mut self, id: u64) {
        self.said.retain(|(other, _)| *other != id);
    }

    /// A capture ahead of time knows what it is for, whatever its closure says, which may be that of serving.
    pub(crate) fn now(&self) -> Option<Said> {
        self.capture.or_else(|| self.said.last().map(|(_, said)| *said))
    }

    /// Says what a capture ahead of time is for, or that it is over.
    pub(crate) fn capture(&mut self, said: Option<Said>) {
        self.capture = said;
    }
}

/// The switches that are set now, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    next: u64,
    set: Vec<Switch>,
}

#[derive(Debug)]
struct Switch {
    id: u64,
    on: bool,
    /// Ends with its step, also when its guard was forgotten.
    of_step: bool,
}

impl Switches {
    pub(crate) fn push(&mut self, on: bool, of_step: bool) -> u64 {
        self.next += 1;
        self.set.push(Switch { id: self.next, on, of_step });
        self.next
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.set.retain(|s| s.id != id);
    }

    /// A new step has begun.
    pub(crate) fn end_step(&mut self) {
        self.set.retain(|s| !s.of_step);
    }

    pub(crate) fn on(&self) -> bool {
        self.set.last().is_none_or(|s| s.on)
    }
}
