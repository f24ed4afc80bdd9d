//! Host memory that a device copies from and to itself, without a copy by the host.

use std::{any::Any, fmt, sync::Arc};

use crate::Result;

/// Host memory with one owner, which the device reads and writes in the order of its stream. On a GPU it is pinned.
///
/// Whoever can reach its bytes cannot start a copy, and the other way round: [`Stream::read_into`](super::Stream::read_into)
/// borrows it mutably, and a copy to the device goes through a [`HostSource`], while which it is not written. It may be
/// dropped at any time, on any thread: copies under way keep what they use.
pub trait HostMemory: Send + Sync + fmt::Debug {
    /// Returns its length in bytes.
    fn len(&self) -> usize;

    /// Returns whether its length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the copies from the device, and returns the bytes.
    ///
    /// # Errors
    /// Returns failures on the stream up to the last copy to this memory, each once.
    fn bytes(&self) -> Result<&[u8]>;

    /// Waits for the copies to and from the device, and returns the bytes.
    ///
    /// # Errors
    /// Returns the errors of [`bytes`](Self::bytes), and [`Error::Argument`](crate::Error::Argument) while there is a
    /// [`HostSource`].
    fn bytes_mut(&mut self) -> Result<&mut [u8]>;

    /// Returns whether [`bytes_mut`](Self::bytes_mut) would return immediately.
    fn is_ready(&self) -> bool;

    /// Returns it as the source of copies to the device.
    fn lend(&self) -> Arc<dyn HostSource>;

    /// Downcasting, for the backend that made it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// [`HostMemory`] as the source of copies to the device, which nobody writes while this exists.
pub trait HostSource: Send + Sync + fmt::Debug {
    /// Waits for the copies from the device, and returns the bytes.
    ///
    /// # Errors
    /// See [`HostMemory::bytes`].
    fn bytes(&self) -> Result<&[u8]>;

    /// Downcasting, for the backend that made it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// A copy of host memory to the device.
#[derive(Clone, Debug)]
pub struct HostCopy {
    /// Destination address.
    pub to: u64,
    /// The host memory.
    pub from: Arc<dyn HostSource>,
    /// The offset of the first byte in it.
    pub offset: usize,
    /// The number of bytes.
    pub bytes: usize,
    /// The number of zero bytes that are written after them.
    pub zeros: u64,
}
