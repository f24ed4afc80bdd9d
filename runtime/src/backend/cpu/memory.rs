//! The memory of a stream: the owner of the bytes.
//!
//! The worker of a stream owns every [`Block`], so only the worker can touch the bytes. Users hold a
//! [`Handle`](super::handle::Handle).

use std::{cell::Cell, sync::Arc};

use memmap2::{MmapOptions, MmapRaw};

use super::MappedFile;
use crate::{Error, Result};

/// Addresses that an arena asks for, unless the machine refuses.
const ARENA_BYTES: u64 = 64 << 30;

/// The pattern of poisoned memory: NaN in every float type, and no plausible index.
pub(super) const POISON: u8 = 0xFF;

/// A mapping: of zeroed pages, which appear when they are first touched, or of a file, which nothing writes.
pub(super) struct Block {
    map: Map,
    /// Bytes that may be used, from the start.
    usable: u64,
    /// Usable bytes, from the start, that are as they should be. Those after them count as poisoned, and are filled when
    /// one of them is first used: most bytes of most arenas never are, and a page costs more than a small kernel.
    filled: Cell<u64>,
}

enum Map {
    Pages(MmapRaw),
    File {
        file: Arc<MappedFile>,
        /// Handles of parts of it.
        uses: usize,
    },
}

impl Block {
    /// `bytes` bytes, all usable.
    pub(super) fn new(device: &str, bytes: u64) -> Result<Self> {
        let oom = || Error::OutOfMemory { device: device.into(), bytes, what: "a buffer of its own" };
        let len = usize::try_from(bytes.max(1)).map_err(|_| oom())?;
        let map = MmapOptions::new().len(len).map_anon().map_err(|_| oom())?;
        Ok(Self { map: Map::Pages(map.into()), usable: bytes, filled: Cell::new(bytes) })
    }

    /// All of a mapped file, for one handle.
    pub(super) fn file(file: Arc<MappedFile>) -> Self {
        let bytes = file.bytes().len() as u64;
        Self { map: Map::File { file, uses: 1 }, usable: bytes, filled: Cell::new(bytes) }
    }

    /// `bytes` bytes, all usable and poisoned.
    pub(super) fn poisoned(bytes: usize) -> Result<Self> {
        let block = Self::new("cpu", bytes as u64)?;
        block.filled.set(0);
        Ok(block)
    }

    /// Addresses for an arena, at least `at_least` bytes; none of them usable yet.
    pub(super) fn reserve(device: &str, at_least: u64) -> Result<Self> {
        let mut bytes = ARENA_BYTES.max(at_least);
        loop {
            // Without a reservation of swap, as most of it is never touched.
            let map = usize::try_from(bytes)
                .ok()
                .and_then(|len| MmapOptions::new().len(len).no_reserve_swap().map_anon().ok());
            match map {
                Some(map) => {
                    return Ok(Self { map: Map::Pages(map.into()), usable: 0, filled: Cell::new(0) });
                }
                None if bytes > at_least => bytes = (bytes / 2).max(at_least),
                None => {
                    let device = device.into();
                    return Err(Error::OutOfMemory { device, bytes, what: "the addresses of an arena" });
                }
            }
        }
    }

    pub(super) fn addr(&self) -> u64 {
        self.start().addr() as u64
    }

    fn start(&self) -> *const u8 {
        match &self.map {
            Map::Pages(map) => map.as_ptr(),
            Map::File { file, .. } => file.bytes().as_ptr(),
        }
    }

    /// Bytes mapped, usable or not.
    pub(super) fn capacity(&self) -> u64 {
        match &self.map {
            Map::Pages(map) => map.len() as u64,
            Map::File { file, .. } => file.bytes().len() as u64,
        }
    }

    /// Only the first `bytes` stay usable.
    fn shrink(&mut self, bytes: u64) {
        let before = self.usable;
        self.usable = before.min(bytes);
        self.filled.set(self.filled.get().min(self.usable));
        // A whole number of pages, whatever their size is here.
        const PAGES: u64 = 1 << 16;
        let start = bytes.next_multiple_of(PAGES);
        if start < before {
            self.give_back(start as usize, (before - start) as usize);
        }
    }

    #[cfg(unix)]
    fn give_back(&self, start: usize, len: usize) {
        use memmap2::UncheckedAdvice::DontNeed;
        let Map::Pages(map) = &self.map else { return };
        // SAFETY: the pages are of this private mapping, no slice of them exists (only the worker makes
        // any, and it is here), and they are beyond `usable`; they read as zeros from here on.
        let advised = unsafe { map.unchecked_advise_range(DontNeed, start, len) };
        // The system may refuse; the pages stay then, which costs memory and nothing else.
        drop(advised);
    }

    #[cfg(not(unix))]
    fn give_back(&self, _start: usize, _len: usize) {}

    /// The bytes' pointer, where `len` bytes at `addr` are usable. `None` of a file's bytes if they are to be written.
    pub(super) fn pointer(&self, addr: u64, len: u64, writes: bool) -> Option<*mut u8> {
        let offset = addr.checked_sub(self.addr())?;
        let end = offset.checked_add(len)?;
        if end > self.usable {
            return None;
        }
        match &self.map {
            Map::Pages(map) => {
                self.fill_to(map, end);
                Some(map.as_mut_ptr().wrapping_add(offset as usize))
            }
            Map::File { .. } if writes => None,
            Map::File { .. } => Some(self.start().cast_mut().wrapping_add(offset as usize)),
        }
    }

    /// Poisons what is not filled of the first `end` bytes, all of which are usable.
    fn fill_to(&self, map: &MmapRaw, end: u64) {
        let from = self.filled.get();
        if let Some(missing) = end.checked_sub(from).filter(|&missing| missing > 0) {
            let start = map.as_mut_ptr().wrapping_add(from as usize);
            // SAFETY: the bytes are of the mapping, as they are usable; no slice of them exists, because a pointer to
            // one of them is only given out after this, and `filled` never falls while there are slices (`shrink`).
            unsafe { start.write_bytes(POISON, missing as usize) };
            self.filled.set(end);
        }
    }
}

/// All blocks of one stream, sorted by address. They never overlap, as all are mapped.
#[derive(Default)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    /// Adds a block; another handle of a file that is there already is only counted.
    pub(super) fn insert(&mut self, block: Block) {
        let at = self.0.partition_point(|b| b.addr() < block.addr());
        match self.0.get_mut(at) {
            Some(Block { map: Map::File { file, uses }, .. }) if file.bytes().as_ptr() == block.start() => {
                *uses += 1;
            }
            _ => self.0.insert(at, block),
        }
    }

    /// Frees the block at `addr`, a file with its last handle.
    pub(super) fn remove(&mut self, addr: u64) {
        if let Ok(at) = self.0.binary_search_by_key(&addr, Block::addr) {
            match &mut self.0[at].map {
                Map::File { uses, .. } if *uses > 1 => *uses -= 1,
                _ => drop(self.0.remove(at)),
            }
        }
    }

    /// Makes the first `bytes` bytes of the block at `addr` usable; those that were not usable before are poisoned, if
    /// `poisoned`, and zero or of earlier use otherwise.
    pub(super) fn commit(&mut self, addr: u64, bytes: u64, poisoned: bool) {
        if let Ok(at) = self.0.binary_search_by_key(&addr, Block::addr) {
            let block = &mut self.0[at];
            block.usable = block.usable.max(bytes.min(block.capacity()));
            if !poisoned {
                block.filled.set(block.usable);
            }
        }
    }

    /// Makes only the first `bytes` bytes of the block at `addr` usable; the pages after them are released.
    pub(super) fn uncommit(&mut self, addr: u64, bytes: u64) {
        if let Ok(at) = self.0.binary_search_by_key(&addr, Block::addr) {
            self.0[at].shrink(bytes);
        }
    }

    /// The pointer to `len` bytes at `addr`, valid for reads while `self` is borrowed, and for writes if asked for; `None`
    /// where they are not all usable bytes of one block, and for writes to a file.
    pub(super) fn pointer(&self, addr: u64, len: u64, writes: bool) -> Option<*mut u8> {
        let after = self.0.partition_point(|b| b.addr() <= addr);
        self.0[after.checked_sub(1)?].pointer(addr, len, writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::access::Access;

    #[test]
    fn memory_is_poisoned_when_it_is_first_used() {
        let block = Block::reserve("cpu:0", 1 << 20).unwrap();
        let addr = block.addr();
        let mut blocks = Blocks::default();
        blocks.insert(block);
        let filled = |blocks: &Blocks| blocks.0[0].filled.get();
        blocks.commit(addr, 1 << 20, true);
        assert_eq!(filled(&blocks), 0, "a page that nobody uses takes no memory");
        Access::new(&mut blocks).bytes_mut(addr + 100, 28).fill(1);
        assert_eq!(Access::new(&mut blocks).bytes(addr, 256)[98..130], {
            let mut bytes = [POISON; 32];
            bytes[2..30].fill(1);
            bytes
        });
        assert_eq!(filled(&blocks), 256);
        // What comes back is fresh, also in the page that stayed.
        blocks.uncommit(addr, 110);
        blocks.commit(addr, 4096, true);
        assert_eq!(Access::new(&mut blocks).bytes(addr + 108, 4), [1, 1, POISON, POISON]);
        blocks.commit(addr, 8192, false);
        assert_eq!(filled(&blocks), 8192, "as it is mapped");
    }

    #[test]
    fn a_file_is_read_until_its_last_handle_goes() {
        let path = std::env::temp_dir().join(format!("graphable-blocks-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let file = Arc::new(MappedFile::of_test(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let addr = file.bytes().as_ptr().addr() as u64;
        let mut blocks = Blocks::default();
        blocks.insert(Block::file(Arc::clone(&file)));
        blocks.insert(Block::file(Arc::clone(&file)));
        assert_eq!(Arc::strong_count(&file), 2, "the file, and one block of it");
        assert_eq!(Access::new(&mut blocks).bytes(addr + 3, 4), b"3456");
        assert!(blocks.pointer(addr, 10, false).is_some());
        assert!(blocks.pointer(addr, 11, false).is_none(), "beyond its end");
        assert!(blocks.pointer(addr, 1, true).is_none(), "nothing writes a file");
        blocks.remove(addr);
        assert_eq!(Access::new(&mut blocks).bytes(addr, 1), b"0");
        blocks.remove(addr);
        assert!(blocks.pointer(addr, 1, false).is_none());
        assert_eq!(Arc::strong_count(&file), 1);
    }
}
