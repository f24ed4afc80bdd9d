//! Work on a device's stream, and the bytes that go with it.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use super::{Launch, Op, View};
use crate::Result;

/// Bytes from the host on their way to the device, and where they go.
///
/// The bytes are taken at the call: the caller's memory may change right after.
#[derive(Clone, Debug, Default)]
pub struct HostBlock {
    /// All bytes, packed.
    pub bytes: Vec<u8>,
    /// `(destination address, offset in bytes, length)`.
    pub writes: Vec<(u64, usize, usize)>,
    /// Device memory that is copied along.
    pub copies: Vec<DeviceCopy>,
}

/// A copy of a device input to where a graph reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCopy {
    /// Destination address.
    pub to: u64,
    /// Source address.
    pub from: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A host read under way.
pub trait PendingBytes: Send {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// What failed on the stream before or at the read.
    fn wait(self: Box<Self>) -> Result<Vec<u8>>;
    /// Whether [`wait`](Self::wait) would return at once.
    fn is_ready(&self) -> bool;
}

/// A point in a device's work, with the device's time.
pub trait Mark: Send + Sync + fmt::Debug {
    /// Whether the device has come by.
    ///
    /// # Errors
    /// What failed on the stream before it.
    fn is_reached(&self) -> Result<bool>;
    /// Waits until the device has come by.
    ///
    /// # Errors
    /// What failed on the stream before it.
    fn wait(&self) -> Result<()>;
    /// The device's time from `earlier` to here, both of them reached; `None` when `earlier` is later, or of another
    /// backend.
    ///
    /// # Errors
    /// What the device says.
    fn since(&self, earlier: &dyn Mark) -> Result<Option<Duration>>;
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Work in the order of a stream.
///
/// In a capture, [`launch`](Self::launch) and [`poison`](Self::poison) are recorded and execute nothing; all other work
/// is refused with [`Error::RefusedInCapture`](crate::Error::RefusedInCapture).
pub trait Stream {
    /// Runs one operation, or records it during a capture.
    ///
    /// # Errors
    /// What the device says; in a capture the capture is then invalid.
    fn launch(&mut self, launch: &Launch) -> Result<()>;

    /// Bytes of workspace memory that a launch of this operation wants; 0 for most. With `measure` the backend may try
    /// out here how to do it best, writing the outputs; without it, launches of this operation that were described
    /// before must stay as they are.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn workspace(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64>;

    /// Copies host bytes to the device.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn host_write(&mut self, block: HostBlock) -> Result<()>;

    /// Starts reading `bytes` bytes at `addr`.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>>;

    /// Marks the end of what the stream has now.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`](crate::Error::RefusedInCapture); [`Error::Config`](crate::Error::Config) where the device has no clock; what the device says.
    fn mark(&mut self) -> Result<Arc<dyn Mark>>;

    /// Overwrites freed memory with a pattern that shows (only in test mode; in a capture it is
    /// recorded like a launch).
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()>;

    /// Whether the core should call [`poison`](Self::poison) for what it frees.
    fn wants_poison(&self) -> bool;

    /// Waits for everything launched so far.
    ///
    /// # Errors
    /// What failed on the stream.
    fn synchronize(&mut self) -> Result<()>;
}
