//! The results arena as recordings use it: they contain the addresses of their blocks, which may be in use
//! when they run.

use std::ops::Range;

use super::{
    Memory, Placement,
    pool::{self, Block, LiveSet, rounded},
};
use crate::{Result, backend::Backend};

/// Returns the lowest place for `bytes` that is neither used nor in `avoid`.
fn place_beside(live: &LiveSet, avoid: &[Block], base: u64, page: u64, bytes: u64) -> u64 {
    let mut used = live.clone();
    // Blocks to be avoided in another arena are not in the way here.
    for &block in avoid.iter().filter(|block| block.addr >= base) {
        let (mut start, mut end) = (block.addr, block.end());
        for other in used.overlapping(block) {
            used.remove(other.addr);
            (start, end) = (start.min(other.addr), end.max(other.end()));
        }
        used.insert(Block { addr: start, len: end - start });
    }
    pool::place(&used, base, bytes, page)
}

impl Memory {
    /// Returns whether nothing in that block of the results arena is live.
    #[inline]
    pub(crate) fn is_free_result(&self, block: Block) -> bool {
        self.results.live.is_free(block)
    }

    /// Notes that a recording writes that block of the results arena, which is live from here on.
    #[inline]
    pub(crate) fn take_result(&mut self, block: Block) {
        self.results.live.insert(block);
    }

    /// Frees a block of the results arena.
    pub(crate) fn give_back_result(&mut self, addr: u64) {
        self.results.live.remove(addr);
    }

    /// Returns the addresses of the results arena.
    pub(crate) fn result_addresses(&self) -> Range<u64> {
        self.results.addresses()
    }

    /// Finds a place for a result that is neither used nor in `avoid`, and commits its memory. It is
    /// [taken](Self::take_result) once its bytes are there.
    pub(crate) fn place_result_beside(
        &mut self,
        backend: &mut dyn Backend,
        avoid: &[Block],
        bytes: u64,
    ) -> Result<Block> {
        let arena = &mut self.results;
        let addr = place_beside(&arena.live, avoid, arena.base(), arena.page, bytes);
        let block = Block { addr, len: rounded(bytes) };
        arena.commit(backend, block, bytes)?;
        Ok(block)
    }

    /// Returns whether something in a range outside the pool is live. The memory of those bytes is committed
    /// afterwards.
    pub(crate) fn is_occupied(&mut self, backend: &mut dyn Backend, range: Range<u64>) -> Result<bool> {
        let (addr, len) = (range.start, range.end - range.start);
        for arena in [&mut self.results, &mut self.eager] {
            let addresses = arena.addresses();
            if addresses.start <= range.start && range.end <= addresses.end {
                arena.preallocate(backend, range.end - addresses.start)?;
                return Ok(!arena.live.is_free(Block { addr, len }));
            }
        }
        Ok(true)
    }

    /// Invalidates the tensors of a range whose bytes are lost.
    pub(crate) fn invalidate(&mut self, range: Range<u64>) {
        for slot in self.slots.iter_mut().filter(|s| s.refs > 0) {
            let block = slot.block();
            if range.start.max(block.addr) >= range.end.min(block.end()) {
                continue;
            }
            match slot.placement {
                Placement::Results => drop(self.results.live.remove(block.addr)),
                Placement::Eager => drop(self.eager.live.remove(block.addr)),
                Placement::Pool => drop(self.pool.free(block.addr)),
                _ => continue,
            }
            slot.placement = Placement::Invalid;
        }
    }
}
