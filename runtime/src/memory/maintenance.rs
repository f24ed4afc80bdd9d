//! Memory ahead of its use, and memory given back.

use super::{Core, Placement};
use crate::{
    Error, Result,
    memory::MemoryArena,
    memory::pool::{Pool, Treap, rounded},
    tree::{Node, NodeBlock, Tree},
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
    /// nothing; so does that of recordings which an estimate set aside. A device input in the eager arena is alive
    /// when its recording is replayed, so its memory is there by then.
    pub(crate) fn trim(&mut self) -> Result<u64> {
        self.kept.free_spares();
        self.tree.forget_spares(|_| true);
        let (mut pool, mut results) = (0, 0);
        for node in self.tree.nodes().chain(self.set_aside().into_iter().flat_map(Tree::nodes)) {
            pool = pool.max(node.usage.pool_extent);
            results = results.max(node.usage.result_extent);
        }
        let backend = &mut *self.backend;
        backend.release();
        Ok(self.pool_zone.trim(backend, pool)?
            + self.results.trim(backend, results)?
            + self.eager.trim(backend, 0)?)
    }

    /// Forgets states of the pool that no recording begins or ends in, from time to time. While no body runs.
    #[inline]
    pub(crate) fn forget_states(&mut self) {
        if self.pool.has_too_many_states() {
            let used = self.tree.nodes().flat_map(|node| [node.entry, node.exit]);
            self.pool.forget_states_but(used, self.tree.len());
        }
    }

    /// What a recording with these blocks needs of the results arena, from its start.
    pub(crate) fn result_extent(&self, blocks: &[NodeBlock]) -> u64 {
        let ends = blocks.iter().filter(|b| b.home == Placement::Results).map(|b| b.addr + rounded(b.bytes));
        ends.max().map_or(0, |end| end - self.results.base())
    }

    /// Refuses to launch what would touch memory that is not there: on a GPU that would cost the context, and with
    /// it everything of the process.
    ///
    /// # Errors
    /// [`Error::Uncommitted`].
    #[inline]
    pub(crate) fn check_committed(&self, at: usize) -> Result<()> {
        let Some(node) = self.tree.node(at) else { return Ok(()) };
        let usage = &node.usage;
        let there = usage.pool_extent <= self.pool_zone.committed
            && usage.result_extent <= self.results.committed
            // Between guard pages memory is committed block by block, and stays.
            || self.pool_zone.page > 0;
        if there { Ok(()) } else { Err(self.uncommitted(node)) }
    }

    #[cold]
    fn uncommitted(&self, node: &Node) -> Error {
        let pool = (node.usage.pool_extent, self.pool_zone.committed);
        let (arena, (needed, committed)) = if pool.0 > pool.1 {
            ("the pool", pool)
        } else {
            ("the results arena", (node.usage.result_extent, self.results.committed))
        };
        Error::Uncommitted { segment: node.site.to_string(), arena, needed, committed }
    }

    /// Forgets everything that was recorded and learnt. Between steps.
    pub(crate) fn forget_recordings(&mut self) {
        let nodes = self.tree.len();
        self.tree.clear();
        if nodes > 0 {
            self.log.evicted(nodes);
        }
        self.pool = Pool::new(self.pool_zone.base(), self.pool_zone.page);
        self.regions = super::learned_placements::Regions::default();
        self.shapes.clear();
        self.host_values.clear();
        self.last_alive = Treap::default();
    }
}
