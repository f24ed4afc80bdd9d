//! Leak counters of a runtime.

use super::core::report;
use crate::{
    Runtime,
    memory::{Live, Tables},
};

impl Live {
    /// Returns the current counters of `rt`.
    pub fn of(rt: &Runtime) -> Self {
        rt.core.borrow().memory.live()
    }
}

impl Tables {
    /// Returns the current counters of `rt`.
    pub fn of(rt: &Runtime) -> Self {
        let core = rt.core.borrow();
        report::tables(&core.memory, &core.tree, &core.call)
    }
}
