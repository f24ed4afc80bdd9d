//! Preallocation and trimming of the arenas.

use super::{
    Memory, MemoryArena, Placement,
    learned_placements::LearnedPlacements,
    pool::{Pool, StateId, Treap, rounded},
};
use crate::{Result, backend::Backend};

/// What recordings need of the arenas that they bake, from the start of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) pool: u64,
    pub(crate) results: u64,
}

impl Extent {
    /// As much as either needs.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { pool: self.pool.max(other.pool), results: self.results.max(other.results) }
    }
}

/// An arena that lacks memory which a recording bakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage {
    pub(crate) arena: &'static str,
    pub(crate) needed: u64,
    pub(crate) committed: u64,
}

impl Memory {
    /// Makes the first `bytes` of an arena usable.
    pub(crate) fn preallocate(
        &mut self,
        backend: &mut dyn Backend,
        arena: MemoryArena,
        bytes: u64,
    ) -> Result<()> {
        let arena = match arena {
            MemoryArena::Pool => &mut self.pool_arena,
            MemoryArena::Results => &mut self.results,
            MemoryArena::Eager => &mut self.eager,
        };
        arena.preallocate(backend, bytes)
    }

    /// Gives back the memory beyond what recordings need, and all of the eager arena. Between steps: nothing else is
    /// alive. Returns how much that was.
    ///
    /// The memory of a recording in the pool or the results arena stays, since a replay commits nothing. A device input
    /// in the eager arena is alive when its recording is replayed, so its memory is there by then.
    pub(crate) fn trim(&mut self, backend: &mut dyn Backend, needed: Extent) -> Result<u64> {
        Ok(self.pool_arena.trim(backend, needed.pool)?
            + self.results.trim(backend, needed.results)?
            + self.eager.trim(backend, 0)?)
    }

    /// Forgets states of the pool that no recording begins or ends in, from time to time. While no body runs.
    #[inline]
    pub(crate) fn forget_states<I: Iterator<Item = StateId>>(
        &mut self,
        used: impl FnOnce() -> I,
        recordings: usize,
    ) {
        if self.pool.has_too_many_states() {
            self.pool.forget_states_but(used(), recordings);
        }
    }

    /// What a recording with these blocks (their placement, where they begin, their bytes) needs of the results arena,
    /// from its start.
    pub(crate) fn result_extent(&self, blocks: impl Iterator<Item = (Placement, u64, u64)>) -> u64 {
        let ends = blocks
            .filter(|(placement, ..)| *placement == Placement::Results)
            .map(|(_, addr, bytes)| addr + rounded(bytes));
        ends.max().map_or(0, |end| end - self.results.base())
    }

    /// Whether the memory that a recording needs is there: a launch into memory that is not would cost the context on a
    /// GPU, and with it everything of the process.
    #[inline]
    pub(crate) fn has_committed(&self, needed: Extent) -> bool {
        needed.pool <= self.pool_arena.committed && needed.results <= self.results.committed
            // Between guard pages memory is committed block by block, and stays.
            || self.pool_arena.page > 0
    }

    /// The arena that lacks memory, where [`has_committed`](Self::has_committed) is false.
    #[cold]
    pub(crate) fn shortage(&self, needed: Extent) -> Shortage {
        let (pool, results) = (self.pool_arena.committed, self.results.committed);
        if needed.pool > pool {
            Shortage { arena: "the pool", needed: needed.pool, committed: pool }
        } else {
            Shortage { arena: "the results arena", needed: needed.results, committed: results }
        }
    }

    /// Forgets the states of the pool and what was learnt of results. Between steps.
    pub(crate) fn forget_recordings(&mut self) {
        self.pool = self.empty_pool();
        self.learned = LearnedPlacements::default();
        self.last_alive = Treap::default();
    }

    pub(super) fn empty_pool(&self) -> Pool {
        Pool::new(self.pool_arena.base(), self.pool_arena.page)
    }
}

#[cfg(test)]
impl Memory {
    /// Lets an arena have so many bytes, as far as its accounting goes; returns how many it had.
    pub(crate) fn set_committed(&mut self, arena: MemoryArena, bytes: u64) -> u64 {
        let arena = match arena {
            MemoryArena::Pool => &mut self.pool_arena,
            MemoryArena::Results => &mut self.results,
            MemoryArena::Eager => &mut self.eager,
        };
        std::mem::replace(&mut arena.committed, bytes)
    }

    pub(crate) fn skip_steps(&mut self, steps: u64) {
        self.slots.skip_steps(steps);
    }

    pub(crate) fn set_handles(&mut self, id: super::SlotId, refs: u64) {
        self.slots.get_mut(id).refs = refs;
    }
}
