//! Temporarily switching graphs on or off.

use std::{cell::RefCell, fmt};

use crate::{Runtime, Step, runtime::scopes::Switches};

/// Graphs are switched on or off while this guard is alive; see [`Step::graphs`].
#[must_use = "graphs are switched back when this is dropped"]
pub struct GraphGuard<'s> {
    switches: &'s RefCell<Switches>,
    id: u64,
}

impl Drop for GraphGuard<'_> {
    fn drop(&mut self) {
        self.switches.borrow_mut().remove(self.id);
    }
}

impl fmt::Debug for GraphGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GraphGuard")
    }
}

impl<'s> Step<'s> {
    /// Switches graphs on or off for calls that start before the guard is dropped. Calls that start while
    /// graphs are off run entirely as in `Mode::None`, which is counted.
    ///
    /// Scopes nest, and the innermost one applies. A function that is itself switched off remains off.
    pub fn graphs(&self, on: bool) -> GraphGuard<'s> {
        let switches = &self.rt.switches;
        GraphGuard { switches, id: switches.borrow_mut().push(on, true) }
    }
}

/// A guard that removes a switch, also if the closure panics.
struct Restoring<'r>(&'r mut Runtime, u64);

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        self.0.switches.get_mut().remove(self.1);
    }
}

impl Runtime {
    /// Switches graphs on or off for all steps that `f` starts, like [`Step::graphs`].
    pub fn with_graphs<R>(&mut self, on: bool, f: impl FnOnce(&mut Self) -> R) -> R {
        let id = self.switches.get_mut().push(on, false);
        let restoring = Restoring(self, id);
        f(&mut *restoring.0)
    }
}
