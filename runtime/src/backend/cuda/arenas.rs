//! The memory of a GPU.

use std::{any::Any, ops::Range, sync::Arc};

use super::{
    CudaBackend, POISON,
    arena::ArenaMemory,
    host_log::CudaHostLog,
    host_memory::CudaHostMemory,
    shared::{Foreign, Owned},
};
use crate::{
    Error, Result,
    backend::{Arena, Arenas, HostLog, HostMemory, SharedMemory, cpu::MappedFile},
};

impl Arenas for CudaBackend {
    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        let _bound = self.outside_capture("reserve")?;
        let memory = Arc::new(ArenaMemory::reserve(&self.shared, at_least)?);
        self.arenas.push(Arc::clone(&memory));
        Ok(Arena { memory, index: self.arenas.len() - 1 })
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        let Some(memory) = self.arenas.get(arena.index).cloned() else {
            return Err(self.failed("commit", "the arena is of another device".into()));
        };
        let (before, now) = match memory.commit(bytes) {
            // Not in a capture: nothing may be waited for.
            Err(Error::OutOfMemory { .. }) if self.capture.is_none() => {
                self.reclaim()?;
                memory.commit(bytes)?
            }
            other => other?,
        };
        if self.options.test_mode && now > before && self.capture.is_none() {
            self.shared.stream.fill(arena.memory.addr() + before, POISON, now - before)?;
        }
        Ok(())
    }

    fn guard_page(&self) -> u64 {
        // Every arena's pages are of one size.
        self.arenas.first().filter(|_| self.options.guard_gaps).map_or(0, |arena| arena.page())
    }

    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        let Some(memory) = self.arenas.get(arena.index) else {
            return Err(self.failed("commit_block", "the arena is of another device".into()));
        };
        for page in memory.commit_block(addr, bytes)? {
            if self.options.test_mode && self.capture.is_none() {
                self.shared.stream.fill(page, POISON, memory.page())?;
            }
        }
        Ok(())
    }

    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        let _bound = self.outside_capture("uncommit")?;
        let Some(memory) = self.arenas.get(arena.index) else {
            return Err(self.failed("uncommit", "the arena is of another device".into()));
        };
        // Memory is unmapped immediately, so no work of this stream, the only one that uses it, may be using
        // it.
        self.shared.stream.synchronize()?;
        memory.uncommit(bytes)
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        let _bound = self.outside_capture("alloc")?;
        self.shared.drain()?;
        let what = "parameters or state";
        let addr = match self.shared.pool.alloc(&self.shared.stream, bytes.max(1), what) {
            Err(Error::OutOfMemory { .. }) => {
                self.reclaim()?;
                self.shared.pool.alloc(&self.shared.stream, bytes.max(1), what)?
            }
            other => other?,
        };
        let owned = Arc::new(Owned { addr, bytes, shared: Arc::clone(&self.shared) });
        self.shared.stream.fill(addr, 0, bytes.max(1))?;
        Ok(owned)
    }

    fn host_memory(&mut self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        let _bound = self.outside_capture("host_memory")?;
        self.shared.drain()?;
        Ok(Box::new(CudaHostMemory::new(&self.shared, &self.faults, bytes)?))
    }

    /// The device reads its own memory much faster than the host's.
    fn map_file(&mut self, _file: &Arc<MappedFile>, _range: Range<usize>) -> Result<Option<SharedMemory>> {
        Ok(None)
    }

    fn blocks_in_tiles(&self) -> bool {
        true
    }

    fn host_log(&mut self, words: usize) -> Result<Arc<dyn HostLog>> {
        let _bound = self.outside_capture("host_log")?;
        self.shared.drain()?;
        Ok(Arc::new(CudaHostLog::new(&self.shared, words)?))
    }

    fn keep(&mut self, owner: Box<dyn Any + Send + Sync>) -> SharedMemory {
        // Its address is nobody else's.
        let place = Box::new(0u64);
        let addr = std::ptr::from_ref(&*place).addr() as u64;
        let owner: Box<dyn Any + Send + Sync> = Box::new((owner, place));
        Arc::new(Foreign { addr, bytes: 0, owner: Some(owner), shared: Arc::clone(&self.shared) })
    }

    fn release(&mut self) -> Result<()> {
        let _bound = self.outside_capture("release")?;
        self.reclaim()
    }
}
