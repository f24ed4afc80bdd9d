//! Memory ahead of its use, and memory given back.

use super::{Core, Home};
use crate::{
    Result,
    memory::MemoryArena,
    pool::{Pool, rounded},
};

impl Core {
    /// Makes the first `bytes` of an arena usable.
    pub(crate) fn prime(&mut self, arena: MemoryArena, bytes: u64) -> Result<()> {
        let zone = match arena {
            MemoryArena::Pool => &mut self.pool_zone,
            MemoryArena::Results => &mut self.results,
            MemoryArena::Eager => &mut self.eager,
        };
        zone.prime(&mut *self.backend, bytes)
    }

    /// Gives back the memory that no recording needs. Between steps: nothing else is alive.
    ///
    /// The memory of a recording that lies in the pool or the results arena stays, since a replay commits
    /// nothing. A device input in the eager arena is alive when its recording is replayed, so its memory is
    /// there by then.
    pub(crate) fn trim(&mut self) -> Result<u64> {
        self.kept.free_spares();
        self.tree.forget_spares(|_| true);
        let (mut pool, mut results) = (0, 0);
        for node in self.tree.nodes() {
            pool = pool.max(node.usage.pool_extent);
            for block in node.blocks.iter().filter(|b| b.home == Home::Results) {
                results = results.max(block.addr + rounded(block.bytes) - self.results.base());
            }
        }
        let backend = &mut *self.backend;
        backend.release();
        Ok(self.pool_zone.trim(backend, pool)?
            + self.results.trim(backend, results)?
            + self.eager.trim(backend, 0)?)
    }

    /// Forgets everything that was recorded and learnt. Between steps.
    pub(crate) fn forget_recordings(&mut self) {
        let nodes = self.tree.len();
        self.tree.clear();
        if nodes > 0 {
            self.log.evicted(nodes);
        }
        self.pool = Pool::new(self.pool_zone.base(), self.pool_zone.page);
        self.region_slots.clear();
        self.shapes.clear();
    }
}
