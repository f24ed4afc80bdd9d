//! The idle pool, lent to eager operations.
//!
//! Between calls nothing in the pool is alive, so its memory can serve once more. Who borrows it holds the
//! step exclusively: no call can be made meanwhile. A borrow that was forgotten ends where the next call begins.

use super::{
    Memory, Placement,
    pool::{Block, LiveSet, rounded},
};
use crate::{Result, backend::Backend};

impl Memory {
    /// Lends the pool; a borrow that was forgotten ends.
    pub(crate) fn begin_lending(&mut self) {
        self.end_lending();
        self.lent = Some(LiveSet::default());
    }

    /// Takes the pool back: tensors that are left in it are void.
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

    /// Where a block of eager code goes: into the borrowed pool, if it is borrowed and has room.
    pub(crate) fn eager_placement(&self, bytes: u64) -> Placement {
        let Some(live) = &self.lent else { return Placement::Eager };
        let (base, len) = (self.pool_arena.base(), rounded(bytes));
        // It is there already: the pool does not grow for this.
        let fits = live.place(base, len) + len <= base + self.pool_arena.committed;
        if fits { Placement::Borrowed } else { Placement::Eager }
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
