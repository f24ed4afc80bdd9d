//! The idle pool, lent to eager operations.
//!
//! Between calls nothing in the pool is alive, so its memory can serve once more. Who borrows it holds the
//! step exclusively: no call can be made meanwhile. A borrow that was forgotten ends where the next call begins.

use super::{Core, Placement};
use crate::{
    Error, Result,
    memory::pool::{Block, LiveSet, rounded},
};

impl Core {
    /// Lends the pool.
    pub(crate) fn begin_scratch(&mut self) -> Result<()> {
        self.may_look("a borrow of the pool")?;
        if let Some(frame) = &self.frame {
            // The pool is in use.
            return Err(Error::NestedCall { outer: frame.name, inner: "a borrow of the pool" });
        }
        // One that was forgotten.
        self.end_scratch();
        self.scratch = Some(LiveSet::default());
        Ok(())
    }

    /// Takes the pool back: tensors that are left in it are void.
    pub(crate) fn end_scratch(&mut self) {
        let Some(live) = self.scratch.take() else { return };
        if live.is_empty() {
            return;
        }
        for slot in &mut self.slots {
            if slot.home == Placement::Borrowed && slot.refs > 0 {
                slot.home = Placement::Invalid;
            }
        }
    }

    /// Where a block of eager code goes: into the borrowed pool, if it is one and has room.
    pub(crate) fn eager_home(&self, bytes: u64) -> Placement {
        let Some(live) = &self.scratch else { return Placement::Eager };
        let (base, len) = (self.pool_zone.base(), rounded(bytes));
        // It is there already: the pool does not grow for this.
        let fits = live.place(base, len) + len <= base + self.pool_zone.committed;
        if fits { Placement::Borrowed } else { Placement::Eager }
    }

    pub(crate) fn place_scratch(&mut self, bytes: u64) -> Result<Block> {
        let (base, len) = (self.pool_zone.base(), rounded(bytes));
        let Some(live) = &mut self.scratch else { return self.eager.place(&mut *self.backend, bytes) };
        let block = Block { addr: live.place(base, len), len };
        live.insert(block);
        self.scratch_high = self.scratch_high.max(block.end() - base);
        Ok(block)
    }
}
