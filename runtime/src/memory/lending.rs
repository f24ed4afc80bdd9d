//! Lending of the idle pool to eager operations.
//!
//! Between calls nothing in the pool is live, so its memory can be used for other purposes. The borrower
//! holds the step exclusively, so no call can be made meanwhile. A forgotten borrow ends when the next call
//! begins.

use super::{
    BlockArena, Memory, Placement,
    pool::{Block, LiveSet, rounded},
};
use crate::{Result, backend::Backend};

impl Memory {
    /// Lends the pool; ends a forgotten borrow.
    pub(crate) fn begin_lending(&mut self) {
        self.end_lending();
        self.lent = Some(LiveSet::default());
    }

    /// Ends the borrow: tensors that are left in the pool become invalid.
    pub(crate) fn end_lending(&mut self) {
        let Some(live) = self.lent.take() else { return };
        if live.is_empty() {
            return;
        }
        for slot in self.slots.iter_mut() {
            if slot.placement == Placement::Borrowed && slot.refs > 0 {
                slot.placement = Placement::Invalid;
            }
        }
    }

    /// Returns the arena of a block of eager code: the borrowed pool, if it is borrowed and has room.
    pub(crate) fn eager_arena(&self, bytes: u64) -> BlockArena {
        let Some(live) = &self.lent else { return BlockArena::Eager };
        let (base, len) = (self.pool_arena.base(), rounded(bytes));
        // The memory is already committed: the pool does not grow for this.
        let fits = live.place(base, len) + len <= self.pool_arena.committed_end();
        if fits { BlockArena::Borrowed } else { BlockArena::Eager }
    }

    pub(super) fn place_borrowed(&mut self, backend: &mut dyn Backend, bytes: u64) -> Result<Block> {
        let (base, len) = (self.pool_arena.base(), rounded(bytes));
        let Some(live) = &mut self.lent else { return self.eager.place(backend, bytes) };
        let block = Block { addr: live.place(base, len), len };
        live.insert(block);
        self.lent_peak = self.lent_peak.max(block.end() - base);
        Ok(block)
    }
}
