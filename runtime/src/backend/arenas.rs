//! The memory of a device.

use super::SharedMemory;
use crate::Result;

/// A range of addresses reserved for an arena. Its bytes exist up to what was committed.
#[derive(Clone, Debug)]
pub struct Arena {
    /// Keeps the range.
    pub memory: SharedMemory,
    /// Index for [`Arenas::commit`](super::Arenas::commit).
    pub index: usize,
}

/// Device memory: arenas at stable addresses, and allocations with one owner.
pub trait Arenas {
    /// Reserves addresses for an arena, nothing committed. At least `at_least` bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn reserve(&mut self, at_least: u64) -> Result<Arena>;

    /// Makes the first `bytes` of an arena usable. Never moves or shrinks.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the arena is as before.
    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()>;

    /// Bytes of unmapped addresses that are wanted around every block of an arena, so that running past a
    /// block faults; 0, which is usual, for none. Blocks then get their memory by
    /// [`commit_block`](Self::commit_block), not by [`commit`](Self::commit).
    fn guard_page(&self) -> u64;

    /// Makes the pages of these bytes of an arena usable, and no others.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()>;

    /// Gives back what was committed of an arena beyond its first `bytes`, as far as that can be given back
    /// in whole pieces, and says how many are committed now. What the arena held there is lost; nothing else
    /// moves. Waits for the work of this stream if it must, never for other streams, and is refused in a
    /// capture.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`](crate::Error::RefusedInCapture); what the device says, and the arena is as before.
    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64>;

    /// Memory of its own, zeroed, for parameters, state and static inputs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::RefusedInCapture`](crate::Error::RefusedInCapture).
    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory>;

    /// Lets go of memory that only makes later calls quicker.
    fn release(&mut self);
}
