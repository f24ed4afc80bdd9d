//! Scopes of calls: the batch they declare, and whether graphs are enabled.

use crate::{BatchDescriptor, ModeSet};

/// The declarations of a scope about its calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) batch: BatchDescriptor,
    pub(crate) allowed: ModeSet,
    /// The calls are captures ahead of time.
    pub(crate) ahead: bool,
}

/// The batches declared by the active scopes, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    next: u64,
    said: Vec<(u64, Said)>,
    /// The declaration of `capture_all`, which applies to all of its steps.
    capture: Option<Said>,
}

impl Batches {
    /// Begins a new step: declarations of forgotten guards end with their step.
    pub(crate) fn end_step(&mut self) {
        self.said.clear();
    }

    /// Adds the declaration of a scope and returns its id.
    pub(crate) fn push(&mut self, said: Said) -> u64 {
        self.next += 1;
        self.said.push((self.next, said));
        self.next
    }

    /// Restricts that scope to these modes.
    pub(crate) fn allow(&mut self, id: u64, modes: ModeSet) {
        if let Some((_, said)) = self.said.iter_mut().find(|(other, _)| *other == id) {
            said.allowed = modes;
        }
    }

    /// Ends that scope.
    pub(crate) fn remove(&mut self, id: u64) {
        self.said.retain(|(other, _)| *other != id);
    }

    /// Returns the current declaration. That of an ahead-of-time capture takes precedence over its closure,
    /// which may declare the batches of serving.
    pub(crate) fn now(&self) -> Option<Said> {
        self.capture.or_else(|| self.said.last().map(|(_, said)| *said))
    }

    /// Sets or clears the declaration of an ahead-of-time capture.
    pub(crate) fn capture(&mut self, said: Option<Said>) {
        self.capture = said;
    }
}

/// The active switches, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    next: u64,
    set: Vec<Switch>,
}

#[derive(Debug)]
struct Switch {
    id: u64,
    on: bool,
    /// Ends with its step, even if its guard was forgotten.
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

    /// Begins a new step.
    pub(crate) fn end_step(&mut self) {
        self.set.retain(|s| !s.of_step);
    }

    pub(crate) fn on(&self) -> bool {
        self.set.last().is_none_or(|s| s.on)
    }
}
