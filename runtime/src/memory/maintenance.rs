//! Preallocation and trimming of the arenas.

use super::{
    Memory, MemoryArena, Placement,
    arena::ArenaAllocator,
    learned_placements::LearnedPlacements,
    pool::{Pool, StateId, Treap, rounded},
};
use crate::{Result, backend::Backend};

/// The memory of each arena to which recordings refer, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) pool: u64,
    pub(crate) results: u64,
}

impl Extent {
    /// Returns the maximum of both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { pool: self.pool.max(other.pool), results: self.results.max(other.results) }
    }
}

/// An arena that lacks memory to which a recording refers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortage {
    pub(crate) arena: &'static str,
    pub(crate) needed: u64,
    pub(crate) committed: u64,
}

impl Memory {
    /// Makes the first `bytes` bytes of an arena usable.
    pub(crate) fn preallocate(
        &mut self,
        backend: &mut dyn Backend,
        arena: MemoryArena,
        bytes: u64,
    ) -> Result<()> {
        self.arena_mut(arena).preallocate(backend, bytes)
    }

    fn arena_mut(&mut self, arena: MemoryArena) -> &mut ArenaAllocator {
        match arena {
            MemoryArena::Pool => &mut self.pool_arena,
            MemoryArena::Results => &mut self.results,
            MemoryArena::Eager => &mut self.eager,
        }
    }

    /// Releases the memory that recordings do not need, and all of the eager arena. Called between steps,
    /// when nothing else is live. Returns how much that was.
    ///
    /// The memory of a recording in the pool or the results arena is retained, since a replay commits
    /// nothing. A device input in the eager arena is live when its recording is replayed, so its memory is
    /// committed by then. Of the memory for weights that can sleep, what lies behind the last weight is released.
    pub(crate) fn trim(&mut self, backend: &mut dyn Backend, needed: Extent) -> Result<u64> {
        let weights = self.weights.as_mut().map_or(Ok(0), |weights| weights.trim(backend))?;
        Ok(weights
            + self.pool_arena.trim(backend, needed.pool)?
            + self.results.trim(backend, needed.results)?
            + self.eager.trim(backend, 0)?)
    }

    /// Occasionally forgets states of the pool in which no recording begins or ends. Called while no body
    /// runs.
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

    /// Returns the extent of the results arena that a recording with these blocks (placement, address, bytes)
    /// needs.
    pub(crate) fn result_extent(&self, blocks: impl Iterator<Item = (Placement, u64, u64)>) -> u64 {
        let ends = blocks
            .filter(|(placement, ..)| *placement == Placement::Results)
            .map(|(_, addr, bytes)| addr + rounded(bytes));
        ends.max().map_or(0, |end| end - self.results.base())
    }

    /// Returns whether the memory that a recording needs is committed: on a GPU, a launch into uncommitted
    /// memory would lose the context, and everything of the process with it.
    #[inline]
    pub(crate) fn has_committed(&self, needed: Extent) -> bool {
        needed.pool <= self.pool_arena.committed && needed.results <= self.results.committed
            // With guard pages, memory is committed block by block and kept.
            || self.pool_arena.page > 0
    }

    /// Returns the arena that lacks memory, if [`has_committed`](Self::has_committed) is false.
    #[cold]
    pub(crate) fn shortage(&self, needed: Extent) -> Shortage {
        let (pool, results) = (self.pool_arena.committed, self.results.committed);
        if needed.pool > pool {
            Shortage { arena: "the pool", needed: needed.pool, committed: pool }
        } else {
            Shortage { arena: "the results arena", needed: needed.results, committed: results }
        }
    }

    /// Forgets the states of the pool and what was learned about results. Called between steps.
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
    /// Sets the number of committed bytes of an arena in its accounting; returns the previous number.
    pub(crate) fn set_committed(&mut self, arena: MemoryArena, bytes: u64) -> u64 {
        std::mem::replace(&mut self.arena_mut(arena).committed, bytes)
    }

    pub(crate) fn skip_steps(&mut self, steps: u64) {
        self.slots.skip_steps(steps);
    }

    pub(crate) fn set_handles(&mut self, id: super::SlotId, refs: u64) {
        self.slots.get_mut(id).refs = refs;
    }
}
