//! Device memory that is freed with its last handle.

use std::{fmt, sync::Arc};

/// Device memory with one owner; freed when the last clone goes and the stream is done with it.
pub trait Memory: Send + Sync + fmt::Debug {
    /// Address of the first byte; aligned to 256 bytes.
    fn addr(&self) -> u64;
    /// Bytes.
    fn len(&self) -> u64;
    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A shared [`Memory`].
pub type SharedMemory = Arc<dyn Memory>;
