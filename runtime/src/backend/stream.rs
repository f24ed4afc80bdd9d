//! Work on a device's stream, and the bytes that go with it.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use super::{HostCopy, HostMemory, Launch, Op, View};
use crate::Result;

/// Bytes to be copied from the host to the device, and their destinations.
///
/// The bytes are taken at the call: the caller's memory may change immediately afterwards.
#[derive(Clone, Debug, Default)]
pub struct HostUpload {
    /// All bytes, packed.
    pub bytes: Vec<u8>,
    /// `(destination address, offset in bytes, length)`.
    pub writes: Vec<(u64, usize, usize)>,
    /// Device memory that is copied at the same time.
    pub copies: Vec<DeviceCopy>,
}

impl HostUpload {
    /// All bytes for one place.
    pub(crate) fn to_place(addr: u64, bytes: Vec<u8>) -> Self {
        let writes = vec![(addr, 0, bytes.len())];
        Self { bytes, writes, copies: Vec::new() }
    }
}

/// A copy of a device input to where a graph reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCopy {
    /// Destination address.
    pub to: u64,
    /// Source address.
    pub from: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// A pending host read.
pub trait PendingBytes: Send {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// Returns failures on the stream before or during the read.
    fn wait(self: Box<Self>) -> Result<Vec<u8>>;
    /// Waits for the bytes, and leaves what kernels have reported, such as an index that is out of range, to the next
    /// [`wait`](Self::wait): where the host only follows what the device decides, as no graph stops there.
    ///
    /// # Errors
    /// Returns failures of the stream itself, and an operation of the user that failed, whose results hold anything.
    fn wait_without_faults(self: Box<Self>) -> Result<Vec<u8>>;
    /// Returns whether [`wait`](Self::wait) would return immediately.
    fn is_ready(&self) -> bool;
}

/// A point in a device's work, with the device's time.
pub trait Mark: Send + Sync + fmt::Debug {
    /// Returns whether the device has reached the mark.
    ///
    /// # Errors
    /// Returns failures on the stream before it.
    fn is_reached(&self) -> Result<bool>;
    /// Waits until the device has reached the mark.
    ///
    /// # Errors
    /// Returns failures on the stream before it.
    fn wait(&self) -> Result<()>;
    /// Returns the time on the device from `earlier` to this mark, both of which were reached; `None` if
    /// `earlier` is later, or of another backend.
    ///
    /// # Errors
    /// Returns errors of the device.
    fn since(&self, earlier: &dyn Mark) -> Result<Option<Duration>>;
    /// Downcasting, for the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Work in the order of a stream.
///
/// During a capture, [`launch`](Self::launch) and [`poison`](Self::poison) are recorded without executing
/// anything; all other work returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture).
pub trait Stream {
    /// Runs one operation, or records it during a capture.
    ///
    /// # Errors
    /// Returns errors of the device; during a capture, the capture is then invalid.
    fn launch(&mut self, launch: &Launch) -> Result<()>;

    /// Returns whether the device can run an operation; the answer is always the same. Front ends launch other operations
    /// where it cannot.
    ///
    /// # Errors
    /// Returns errors of the device.
    fn supports(&mut self, op: &Op) -> Result<bool>;

    /// Returns the number of bytes of workspace that a launch of this operation needs; 0 for most. With
    /// `measure`, the backend may try different algorithms, writing the outputs; without it, launches of this
    /// operation that were described before must remain unchanged.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn workspace(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64>;

    /// Copies host bytes to the device.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn host_write(&mut self, block: HostUpload) -> Result<()>;

    /// Copies any number of host bytes that are lent for the call. By default they go to [`host_write`](Self::host_write) in pieces, of
    /// which each is copied first. A backend that copies bytes to memory of its own anyway should do without the first copy.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn host_write_lent(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        /// Small enough to stay in a cache until they go on to the device.
        const PIECE: usize = 4 << 20;
        (addr..)
            .step_by(PIECE)
            .zip(bytes.chunks(PIECE))
            .try_for_each(|(addr, piece)| self.host_write(HostUpload::to_place(addr, piece.to_vec())))
    }

    /// Starts reading `bytes` bytes at `addr`.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>>;

    /// Has the device copy host memory of this backend, in the order of the stream.
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn write_from(&mut self, copy: HostCopy) -> Result<()>;

    /// Has the device copy `bytes` bytes at `addr` to the start of host memory of this backend, in the order of the stream.
    ///
    /// # Errors
    /// See [`launch`](Self::launch); [`Error::Argument`](crate::Error::Argument) while there is a
    /// [`HostSource`](super::HostSource) of the memory.
    fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn HostMemory) -> Result<()>;

    /// Marks the end of the work that is currently on the stream.
    ///
    /// # Errors
    /// Returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture);
    /// [`Error::Config`](crate::Error::Config) if the device has no clock; and errors of the device.
    fn mark(&mut self) -> Result<Arc<dyn Mark>>;

    /// Overwrites freed memory with a recognisable pattern (only in test mode; during a capture it is
    /// recorded like a launch).
    ///
    /// # Errors
    /// See [`launch`](Self::launch).
    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()>;

    /// Returns whether the core should call [`poison`](Self::poison) for the memory that it frees.
    fn wants_poison(&self) -> bool;

    /// Waits for all work launched so far.
    ///
    /// # Errors
    /// Returns failures on the stream.
    fn synchronize(&mut self) -> Result<()>;
}
