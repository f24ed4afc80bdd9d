//! High-water marks, and states of the memory that are set aside during an estimate.

use super::{
    ArenaUsage, Memory,
    arena::ArenaAllocator,
    learned_placements::LearnedPlacements,
    pool::{LiveSet, Pool},
};
use crate::{Result, backend::Backend};

/// Bytes of each arena: the pool, results, eager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArenaBytes {
    pub(crate) pool: u64,
    pub(crate) results: u64,
    pub(crate) eager: u64,
}

/// Bytes of memory with an identity that is still used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnedBytes {
    /// Static inputs and host blocks of graph objects.
    pub(crate) of_graphs: u64,
    /// Parameters, weights in blocks and state.
    pub(crate) of_user: u64,
}

/// The state that a discarded capture must not change.
#[derive(Debug)]
pub(crate) struct MemoryAside {
    pool: Pool,
    learned: LearnedPlacements,
}

fn usage(arena: &ArenaAllocator, live: &LiveSet, peak: u64) -> ArenaUsage {
    ArenaUsage { committed_bytes: arena.committed, live_bytes: live.bytes(), peak_bytes: peak }
}

impl Memory {
    /// Returns the high-water marks of bytes in use, from the start of each arena.
    pub(crate) fn high_water(&self) -> ArenaBytes {
        ArenaBytes { pool: self.pool.high_water(), results: self.results.high, eager: self.eager.high }
    }

    /// Returns the committed bytes of each arena.
    pub(crate) fn committed(&self) -> ArenaBytes {
        let [pool, results, eager] = [&self.pool_arena, &self.results, &self.eager].map(|a| a.committed);
        ArenaBytes { pool, results, eager }
    }

    /// Resets the high-water marks.
    pub(crate) fn forget_high_water(&mut self) {
        self.pool.forget_high_water();
        (self.results.high, self.eager.high) = (0, 0);
    }

    /// Raises the high-water marks to at least these values.
    pub(crate) fn raise_high_water(&mut self, before: ArenaBytes) {
        self.pool.raise_high_water(before.pool);
        self.results.high = self.results.high.max(before.results);
        self.eager.high = self.eager.high.max(before.eager);
    }

    /// Sets aside the state that a capture changes. Called between steps.
    pub(crate) fn set_aside(&mut self) -> MemoryAside {
        let pool = self.empty_pool();
        MemoryAside {
            pool: std::mem::replace(&mut self.pool, pool),
            learned: std::mem::take(&mut self.learned),
        }
    }

    /// Restores the state that was set aside, with its high-water marks.
    pub(crate) fn put_back(&mut self, aside: MemoryAside, marks: ArenaBytes) {
        (self.pool, self.learned) = (aside.pool, aside.learned);
        self.pool.raise_high_water(marks.pool);
        (self.results.high, self.eager.high) = (marks.results, marks.eager);
    }

    /// Releases what was committed since each arena had this size.
    pub(crate) fn trim_to(&mut self, backend: &mut dyn Backend, committed: ArenaBytes) -> Result<()> {
        self.pool_arena
            .trim(backend, committed.pool)
            .and_then(|_| self.results.trim(backend, committed.results))
            .and_then(|_| self.eager.trim(backend, committed.eager))
            .map(drop)
    }

    /// Returns the usage of the pool, the results arena and the eager arena.
    pub(crate) fn arenas(&self) -> [ArenaUsage; 3] {
        let marks = self.high_water();
        [
            usage(&self.pool_arena, &self.pool.live(), marks.pool),
            usage(&self.results, &self.results.live, marks.results),
            usage(&self.eager, &self.eager.live, marks.eager),
        ]
    }

    /// Returns the maximum number of bytes of the pool that were ever borrowed.
    pub(crate) fn lent_peak(&self) -> u64 {
        self.lent_peak
    }

    /// Returns the sizes of what has an identity: buffers of graph objects, parameters, state.
    pub(crate) fn owned_bytes(&self) -> OwnedBytes {
        let mut bytes = OwnedBytes::default();
        for owned in self.owned.iter() {
            let of = if owned.graph.is_some() { &mut bytes.of_graphs } else { &mut bytes.of_user };
            *of += owned.memory.len();
        }
        bytes
    }
}
