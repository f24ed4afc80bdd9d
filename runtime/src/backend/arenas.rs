//! The memory of a device.

use std::{any::Any, ops::Range, sync::Arc};

use super::{HostLog, HostMemory, SharedMemory, cpu::MappedFile};
use crate::Result;

/// A range of addresses reserved for an arena. Only committed bytes are backed by memory.
#[derive(Clone, Debug)]
pub struct Arena {
    /// Owns the range.
    pub memory: SharedMemory,
    /// The index for [`Arenas::commit`](super::Arenas::commit).
    pub index: usize,
}

/// Device memory: arenas at stable addresses, and allocations with one owner.
pub trait Arenas {
    /// Reserves at least `at_least` bytes of addresses for an arena, with nothing committed.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn reserve(&mut self, at_least: u64) -> Result<Arena>;

    /// Makes the first `bytes` bytes of an arena usable. Never moves or shrinks the arena.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory); the arena is unchanged.
    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()>;

    /// Returns the number of unmapped bytes required around every block of an arena, so that accesses beyond
    /// a block fault; usually 0, for none. Otherwise, blocks get their memory from
    /// [`commit_block`](Self::commit_block), not from [`commit`](Self::commit).
    fn guard_page(&self) -> u64;

    /// Makes only the pages of these bytes of an arena usable.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()>;

    /// Releases the committed memory of an arena beyond its first `bytes` bytes, as far as that is possible
    /// in whole pieces, and returns the number of bytes that remain committed. The contents of the released
    /// memory are lost; nothing else moves. Waits for the work of this stream if necessary, but never for
    /// other streams, and is not allowed during a capture.
    ///
    /// # Errors
    /// Returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture), and errors of the device; the
    /// arena is then unchanged.
    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64>;

    /// Allocates zeroed memory with an owner, for parameters, state and static inputs.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) or
    /// [`Error::RefusedInCapture`](crate::Error::RefusedInCapture).
    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory>;

    /// Returns bytes of a mapped file, which `range` is within, as memory that nothing writes, without a copy. The address need not
    /// be aligned. `None` if the device cannot use host memory where it is.
    ///
    /// # Errors
    /// See [`alloc`](Self::alloc).
    fn map_file(&mut self, file: &Arc<MappedFile>, range: Range<usize>) -> Result<Option<SharedMemory>>;

    /// Returns whether operations find weights in blocks in tiles (`quantized/tiles.rs`), and not in rows as files have them.
    fn blocks_in_tiles(&self) -> bool;

    /// Allocates zeroed host memory that the device can copy from and to.
    ///
    /// # Errors
    /// See [`alloc`](Self::alloc).
    fn host_memory(&mut self, bytes: usize) -> Result<Box<dyn HostMemory>>;

    /// Allocates a log of zeroed words in host memory, to which operations append.
    ///
    /// # Errors
    /// See [`alloc`](Self::alloc).
    fn host_log(&mut self, words: usize) -> Result<Arc<dyn HostLog>>;

    /// Returns memory without any bytes, at an address that no other has. `owner` is dropped when the last clone of it is, and
    /// all work that was on the stream by then has ended.
    fn keep(&mut self, owner: Box<dyn Any + Send + Sync>) -> SharedMemory;

    /// Waits for the work on the stream, and releases memory that is only cached to make later calls faster, and
    /// everything whose release waited for that work.
    ///
    /// # Errors
    /// Returns an error of the device; what was not released is released later.
    fn release(&mut self) -> Result<()>;
}
