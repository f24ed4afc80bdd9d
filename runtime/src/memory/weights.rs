//! The arena of weights that can sleep: one that keeps its addresses while it gives its memory back.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{arena::ArenaAllocator, pool::Block};
use crate::{
    Error, Result,
    backend::{Backend, HostUpload, SharedMemory},
    observe::memory::ArenaUsage,
    value::memory,
};

/// Bytes that are saved or restored at a time: enough to keep a bus busy, and few beside the weights.
const PIECE: u64 = 32 << 20;

/// Blocks whose last handle was dropped, on any thread.
#[derive(Debug, Default)]
struct Freed {
    blocks: Mutex<Vec<u64>>,
    any: AtomicBool,
}

impl Freed {
    fn push(&self, addr: u64) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(addr);
        self.any.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<u64> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        mem::take(&mut *self.blocks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The memory of one weight. All work on it is in the order of one stream, so its block may be another weight's once this is
/// dropped.
#[derive(Debug)]
struct WeightBlock {
    addr: u64,
    bytes: u64,
    freed: Arc<Freed>,
    /// Keeps the addresses after the runtime is gone.
    _arena: SharedMemory,
}

impl memory::Memory for WeightBlock {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for WeightBlock {
    fn drop(&mut self) {
        self.freed.push(self.addr);
    }
}

/// The contents of a block of the arena while it cannot be used.
#[derive(Debug)]
enum Asleep {
    /// Its contents, on the host.
    Saved(Vec<u8>),
    Discarded,
}

/// Weights with memory of their own, all of which sleep at the same time.
#[derive(Debug)]
pub(super) struct WeightArena {
    arena: ArenaAllocator,
    freed: Arc<Freed>,
    /// The address of each weight, and its bytes, of which there may be none.
    weights: BTreeMap<u64, u64>,
    is_asleep: bool,
    /// By address, with the length of the block: blocks that cannot be used. While the arena sleeps, all of them; after that,
    /// those whose contents were discarded and have not been written since.
    unusable: BTreeMap<u64, (u64, Asleep)>,
}

impl WeightArena {
    pub(super) fn new(backend: &mut dyn Backend) -> Result<Self> {
        Ok(Self {
            arena: ArenaAllocator::new(backend)?,
            freed: Arc::default(),
            weights: BTreeMap::new(),
            is_asleep: false,
            unusable: BTreeMap::new(),
        })
    }

    /// Frees the blocks that nobody has any more.
    pub(super) fn free_dropped(&mut self) {
        for addr in self.freed.take() {
            self.arena.live.remove(addr);
            self.weights.remove(&addr);
            self.unusable.remove(&addr);
        }
    }

    /// Returns memory for a weight of `bytes` bytes, with whatever is there.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`], and [`Error::OutOfMemory`].
    pub(super) fn place(&mut self, backend: &mut dyn Backend, bytes: u64) -> Result<SharedMemory> {
        if self.is_asleep {
            return Err(Error::Asleep { op: "a new parameter" });
        }
        self.free_dropped();
        let Block { addr, .. } = self.arena.place(backend, bytes)?;
        self.weights.insert(addr, bytes);
        let (freed, arena) = (Arc::clone(&self.freed), self.arena.memory());
        Ok(Arc::new(WeightBlock { addr, bytes: bytes.max(1), freed, _arena: arena }))
    }

    /// Returns whether some weight cannot be used.
    #[inline]
    pub(super) fn has_unusable(&self) -> bool {
        self.is_asleep || !self.unusable.is_empty()
    }

    /// Rejects memory of a weight that cannot be used.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`] or [`Error::Discarded`].
    pub(super) fn check(&self, op: &'static str, addr: u64) -> Result<()> {
        if !self.arena.addresses().contains(&addr) {
            return Ok(());
        }
        if self.is_asleep {
            return Err(Error::Asleep { op });
        }
        match self.unusable_at(addr) {
            Some(_) => Err(Error::Discarded { op }),
            None => Ok(()),
        }
    }

    fn unusable_at(&self, addr: u64) -> Option<u64> {
        let (&start, &(len, _)) = self.unusable.range(..=addr).next_back()?;
        (addr - start < len).then_some(start)
    }

    /// Rejects a write to memory of a weight that sleeps, and one to a part of a weight whose contents were discarded: the rest would
    /// be anything.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn check_write(&self, op: &'static str, addr: u64, bytes: u64) -> Result<()> {
        match self.unusable_at(addr) {
            Some(start) if !self.is_asleep && start == addr && self.unusable[&start].0 == bytes => Ok(()),
            _ => self.check(op, addr),
        }
    }

    /// Notes that all of a weight was written.
    pub(super) fn wrote(&mut self, addr: u64, bytes: u64) {
        if self.unusable.get(&addr).is_some_and(|(len, _)| *len == bytes) {
            self.unusable.remove(&addr);
        }
    }

    /// Gives the memory back; all weights keep their addresses. Saves their contents on the host before, if `saves`. Returns the number
    /// of bytes given back.
    ///
    /// # Errors
    /// Returns [`Error::Config`] on a device that cannot, and errors of the device; the weights are awake then.
    pub(super) fn sleep(&mut self, backend: &mut dyn Backend, saves: bool) -> Result<u64> {
        self.free_dropped();
        if self.is_asleep {
            if !saves {
                self.unusable.values_mut().for_each(|(_, contents)| *contents = Asleep::Discarded);
            }
            return Ok(0);
        }
        let mut blocks = BTreeMap::new();
        for (&addr, &bytes) in self.weights.iter().filter(|(_, bytes)| **bytes > 0) {
            let keeps = saves && !self.unusable.contains_key(&addr);
            let contents = if keeps { Asleep::Saved(read(backend, addr, bytes)?) } else { Asleep::Discarded };
            blocks.insert(addr, (bytes, contents));
        }
        let released = self.arena.trim(backend, 0)?;
        if self.arena.committed > 0 {
            let reason = format!("{} cannot give memory back under addresses that are kept", backend.name());
            return Err(Error::Config { what: "Runtime::sleep".into(), reason });
        }
        self.unusable = blocks;
        self.is_asleep = true;
        Ok(released)
    }

    /// Takes memory for the weights again, and restores what was saved. Returns the number of bytes taken.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], and errors of the device; the weights are asleep then, and can be woken again.
    pub(super) fn wake(&mut self, backend: &mut dyn Backend) -> Result<u64> {
        self.free_dropped();
        if !self.is_asleep {
            return Ok(0);
        }
        let before = self.arena.committed;
        let end = self.arena.live.end().map_or(0, |end| end - self.arena.base());
        self.arena.preallocate(backend, end)?;
        for (&addr, (_, contents)) in &self.unusable {
            if let Asleep::Saved(bytes) = contents {
                write(backend, addr, bytes)?;
            }
        }
        self.unusable.retain(|_, (_, contents)| matches!(contents, Asleep::Discarded));
        self.is_asleep = false;
        Ok(self.arena.committed - before)
    }

    /// Releases memory behind the last weight. Returns the number of bytes.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(super) fn trim(&mut self, backend: &mut dyn Backend) -> Result<u64> {
        self.free_dropped();
        let end = self.arena.live.end().map_or(0, |end| end - self.arena.base());
        if self.is_asleep { Ok(0) } else { self.arena.trim(backend, end) }
    }

    pub(super) fn usage(&self) -> WeightUsage {
        let ArenaAllocator { committed, ref live, high, .. } = self.arena;
        let saved = |(_, contents): &(u64, Asleep)| match contents {
            Asleep::Saved(bytes) => bytes.len() as u64,
            Asleep::Discarded => 0,
        };
        let unusable = self.unusable.values();
        WeightUsage {
            arena: ArenaUsage { committed_bytes: committed, live_bytes: live.bytes(), peak_bytes: high },
            sleeping_bytes: if self.is_asleep { unusable.clone().map(|(bytes, _)| bytes).sum() } else { 0 },
            saved_bytes: unusable.map(saved).sum(),
        }
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// Returns the first weight whose memory is not all live and committed: its address and its bytes.
    pub(super) fn fault(&self) -> Option<(u64, u64)> {
        let is_live = |addr| self.arena.live.iter().any(|block| block.addr == addr);
        let is_committed = |end| self.is_asleep || self.arena.page > 0 || end <= self.arena.committed_end();
        self.weights
            .iter()
            .map(|(&addr, &bytes)| (addr, bytes))
            .find(|&(addr, bytes)| !is_live(addr) || !is_committed(addr + bytes))
    }
}

/// The memory of weights that can sleep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WeightUsage {
    pub(crate) arena: ArenaUsage,
    pub(crate) sleeping_bytes: u64,
    pub(crate) saved_bytes: u64,
}

fn read(backend: &mut dyn Backend, addr: u64, bytes: u64) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(bytes as usize);
    while let Some(left) = bytes.checked_sub(all.len() as u64).filter(|&left| left > 0) {
        all.extend(backend.read(addr + all.len() as u64, left.min(PIECE))?.wait()?);
    }
    Ok(all)
}

fn write(backend: &mut dyn Backend, addr: u64, bytes: &[u8]) -> Result<()> {
    for (piece, bytes) in bytes.chunks(PIECE as usize).enumerate() {
        let writes = vec![(addr + piece as u64 * PIECE, 0, bytes.len())];
        backend.host_write(HostUpload { bytes: bytes.to_vec(), writes, ..HostUpload::default() })?;
    }
    Ok(())
}
