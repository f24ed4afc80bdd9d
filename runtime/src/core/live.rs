//! What is alive now, for tests that look for leaks.

use super::Core;
use crate::{Runtime, Step};

/// Tensors and blocks of a runtime that are alive. All zero when no tensor of the step is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Tensors, views and clones of one counted once.
    pub tensors: usize,
    /// Bytes of the segment pool.
    pub pool: u64,
    /// Bytes of the results arena.
    pub results: u64,
    /// Bytes of the eager arena.
    pub eager: u64,
}

impl Live {
    /// Of `rt`, now.
    pub fn of(rt: &Runtime) -> Self {
        rt.core.borrow().live()
    }

    /// Of the runtime of a step, now.
    pub fn in_step(step: &Step<'_>) -> Self {
        Self::of(step.scope().rt)
    }
}

impl Core {
    fn live(&self) -> Live {
        Live {
            tensors: self.slots.len() - self.free_slots.len(),
            pool: self.pool.live().bytes(),
            results: self.results.live.bytes(),
            eager: self.eager.live.bytes(),
        }
    }
}
