//! Arenas: addresses, the memory mapped to them, and their live blocks.

use std::ops::Range;

use super::pool::{self, Block, LiveSet, guarded, rounded};
use crate::{
    Result,
    backend::{Arena, Backend, SharedMemory},
};

/// The minimum growth of an arena.
const COMMIT_STEP: u64 = 2 << 20;

/// An arena with first-fit blocks. For the pool, the blocks are in its state instead.
#[derive(Debug)]
pub(crate) struct ArenaAllocator {
    arena: Arena,
    /// The number of committed bytes, from its start.
    pub(super) committed: u64,
    pub(super) live: LiveSet,
    /// The high-water mark of bytes in use, from its start.
    pub(super) high: u64,
    /// See [`Backend::guard_page`]. If set, memory is committed block by block and kept, and is not counted.
    pub(super) page: u64,
}

impl ArenaAllocator {
    pub(super) fn new(backend: &mut dyn Backend) -> Result<Self> {
        let arena = backend.reserve(COMMIT_STEP)?;
        Ok(Self { arena, committed: 0, live: LiveSet::default(), high: 0, page: backend.guard_page() })
    }

    pub(super) fn base(&self) -> u64 {
        self.arena.memory.addr()
    }

    /// Returns the owner of the addresses.
    pub(super) fn memory(&self) -> SharedMemory {
        SharedMemory::clone(&self.arena.memory)
    }

    /// Returns the reserved addresses.
    pub(super) fn addresses(&self) -> Range<u64> {
        self.base()..self.base() + self.arena.memory.len()
    }

    /// Returns the end of the committed memory.
    pub(super) fn committed_end(&self) -> u64 {
        self.base() + self.committed
    }

    /// Commits the memory of a block of `bytes` bytes.
    pub(super) fn commit(&mut self, backend: &mut dyn Backend, block: Block, bytes: u64) -> Result<()> {
        let need = block.end() - self.base();
        self.high = self.high.max(need);
        if self.page > 0 {
            return backend.commit_block(&self.arena, block.addr, guarded(bytes));
        }
        self.preallocate(backend, need)
    }

    /// Makes the first `bytes` bytes usable.
    pub(super) fn preallocate(&mut self, backend: &mut dyn Backend, bytes: u64) -> Result<()> {
        if self.page == 0 && bytes > self.committed {
            let step = bytes.checked_next_multiple_of(COMMIT_STEP).unwrap_or(bytes);
            let want = step.min(self.arena.memory.len()).max(bytes);
            backend.commit(&self.arena, want)?;
            self.committed = want;
        }
        Ok(())
    }

    /// Releases the memory beyond the first `bytes` bytes, as far as the backend can; returns how much that
    /// was.
    pub(super) fn trim(&mut self, backend: &mut dyn Backend, bytes: u64) -> Result<u64> {
        let keep = bytes.next_multiple_of(COMMIT_STEP);
        if self.page > 0 || keep >= self.committed {
            return Ok(0);
        }
        let before = self.committed;
        self.committed = backend.uncommit(&self.arena, keep)?;
        Ok(before.saturating_sub(self.committed))
    }

    pub(super) fn place(&mut self, backend: &mut dyn Backend, bytes: u64) -> Result<Block> {
        let len = rounded(bytes);
        let block = Block { addr: pool::place(&self.live, self.base(), bytes, self.page), len };
        self.commit(backend, block, bytes)?;
        self.live.insert(block);
        Ok(block)
    }
}
