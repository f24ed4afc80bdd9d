//! Device memory that is freed with its last handle.

use std::{fmt, sync::Arc};

/// Device memory with one owner; freed when the last clone is dropped and the stream has finished using it.
pub trait Memory: Send + Sync + fmt::Debug {
    /// Returns the address of the first byte, aligned to 256 bytes.
    fn addr(&self) -> u64;
    /// Returns the length in bytes.
    fn len(&self) -> u64;
    /// Returns whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A shared [`Memory`].
pub type SharedMemory = Arc<dyn Memory>;
