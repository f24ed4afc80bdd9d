//! The options that the program chose for its runtime.

use std::time::Duration;

use crate::{Numerics, Passes};

#[derive(Debug)]
pub(crate) struct Settings {
    capture_closed: bool,
    free_at_last_use: bool,
    reuse_budget: Option<Duration>,
    graph_memory_limit: Option<u64>,
    numerics: Numerics,
    passes: Passes,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            capture_closed: false,
            free_at_last_use: true,
            reuse_budget: None,
            graph_memory_limit: None,
            numerics: Numerics::default(),
            passes: Passes::default(),
        }
    }
}

impl Settings {
    /// Returns whether a call that would have to record something is an error.
    pub(crate) fn is_capture_closed(&self) -> bool {
        self.capture_closed
    }

    pub(crate) fn close_capture(&mut self, closed: bool) {
        self.capture_closed = closed;
    }

    /// Returns whether recordings free memory after its last use; otherwise with its last handle.
    pub(crate) fn frees_at_last_use(&self) -> bool {
        self.free_at_last_use
    }

    pub(crate) fn free_at_last_use(&mut self, on: bool) {
        self.free_at_last_use = on;
    }

    /// Returns the time that an update of a shared executable may take; `None` if new recordings do not
    /// share.
    #[inline]
    pub(crate) fn reuse_budget(&self) -> Option<Duration> {
        self.reuse_budget
    }

    pub(crate) fn share_executables(&mut self, budget: Option<Duration>) {
        self.reuse_budget = budget;
    }

    /// Returns the memory that graphs may use; see
    /// [`Runtime::limit_graph_memory`](crate::Runtime::limit_graph_memory).
    pub(crate) fn graph_memory_limit(&self) -> Option<u64> {
        self.graph_memory_limit
    }

    pub(crate) fn limit_graph_memory(&mut self, bytes: Option<u64>) {
        self.graph_memory_limit = bytes;
    }

    /// Returns the switches of calls that set none of their own, and of eager code.
    pub(crate) fn numerics(&self) -> Numerics {
        self.numerics
    }

    pub(crate) fn set_numerics(&mut self, numerics: Numerics) {
        self.numerics = numerics;
    }

    /// Returns the passes over new recordings.
    #[inline]
    pub(crate) fn passes(&self) -> &Passes {
        &self.passes
    }

    /// Returns those of before.
    #[must_use]
    pub(crate) fn set_passes(&mut self, passes: Passes) -> Passes {
        std::mem::replace(&mut self.passes, passes)
    }
}
