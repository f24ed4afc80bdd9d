//! The interface between the runtime and a device, and its implementations.
//!
//! The core above validates everything: addresses, shapes, phases, ownership. A backend carries
//! out what it is told, in stream order, and reports what only it can know.
//!
//! # Stability
//!
//! **Unstable.** This module is public for tests and for devices of one's own: any release may change it, and
//! semantic versioning does not cover it. The options of the devices are stable as
//! [`CpuOptions`](crate::CpuOptions) and [`CudaOptions`](crate::CudaOptions).

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::{Error, Result, observe::inspect::Topology};

#[allow(unsafe_code)] // Addresses become slices, and `gemm` takes pointers: each block has its proof.
pub mod cpu;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)] // The driver is called here: each block has its proof.
pub mod cuda;
pub mod faulty;
mod op;
mod recording;

pub use op::{Binary, Compare, Counts, Launch, MaskKind, Op, Reduce, RopeStyle, Unary};
pub use recording::{Recording, Signature, Update};

pub use crate::value::{
    memory::{Memory, SharedMemory},
    view::View,
};

/// A range of addresses reserved for an arena. Its bytes exist up to what was committed.
#[derive(Clone, Debug)]
pub struct Arena {
    /// Keeps the range.
    pub memory: SharedMemory,
    /// Index for [`Backend::commit`].
    pub index: usize,
}

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

/// A captured graph, ready to run.
pub trait Executable: Send + Sync + fmt::Debug {
    /// Number of nodes.
    fn nodes(&self) -> usize;
    /// Bytes of device and driver memory that it holds, as far as they are known.
    fn bytes(&self) -> u64;
    /// Its nodes and what waits for what, as the device has them.
    ///
    /// # Errors
    /// [`Error::Config`] when the backend was not told to keep them: see
    /// [`Backend::keep_topology`].
    fn topology(&self) -> Result<Topology>;
    /// The [`Recording::id`] of what its next replay runs. `None` for one that [`Backend::end_capture`] made,
    /// which runs one recording for ever; and while nothing can be replayed by it, because that recording is
    /// gone or an update broke off.
    fn runs(&self) -> Option<u64>;
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
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

/// What a device must be able to do. One value is one device with one stream.
///
/// Calls come from one thread at a time. Everything but [`alloc`](Self::alloc),
/// [`read`](Self::read) and [`synchronize`](Self::synchronize) is asynchronous; all work runs in
/// the order of the calls, but for branches of a [`fork`](Self::fork). Between [`begin_capture`](Self::begin_capture) and
/// [`end_capture`](Self::end_capture), [`launch`](Self::launch) records and executes nothing, and
/// `read`, `replay`, `host_write`, `alloc` and `synchronize` are refused with
/// [`Error::RefusedInCapture`].
pub trait Backend: Send + fmt::Debug {
    /// `"cpu"`, `"cuda:0"`, …
    fn name(&self) -> String;

    /// Reserves addresses for an arena, nothing committed. At least `at_least` bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn reserve(&mut self, at_least: u64) -> Result<Arena>;

    /// Makes the first `bytes` of an arena usable. Never moves or shrinks.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the arena is as before.
    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()>;

    /// Gives back what was committed of an arena beyond its first `bytes`, as far as that can be given back
    /// in whole pieces, and says how many are committed now. What the arena held there is lost; nothing else
    /// moves. Waits for the work of this stream if it must, never for other streams, and is refused in a
    /// capture.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`]; what the device says, and the arena is as before.
    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64>;

    /// Free and total bytes of the device; `None` where nobody counts them.
    ///
    /// # Errors
    /// What the device says.
    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    /// How many graphs of one kernel eager operations are launched as, and their bytes.
    fn eager_graphs(&self) -> (usize, u64) {
        (0, 0)
    }

    /// How often the host has waited for the device because all memory for bytes on their way there was in use.
    fn staging_waits(&self) -> u64 {
        0
    }

    /// Marks the end of what the stream has now.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`]; [`Error::Config`] where the device has no clock; what the device says.
    fn mark(&mut self) -> Result<Arc<dyn Mark>> {
        Err(Error::Config { what: "an event".into(), why: format!("{} tells no time", self.name()) })
    }

    /// Lets go of memory that only makes later calls quicker.
    fn release(&mut self) {}

    /// Bytes of unmapped addresses that are wanted around every block of an arena, so that running past a
    /// block faults; 0, which is usual, for none. Blocks then get their memory by
    /// [`commit_block`](Self::commit_block), not by [`commit`](Self::commit).
    fn guard_page(&self) -> u64 {
        0
    }

    /// Makes the pages of these bytes of an arena usable, and no others.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        self.commit(arena, addr + bytes - arena.memory.addr())
    }

    /// Memory of its own, zeroed, for parameters, state and static inputs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::RefusedInCapture`].
    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory>;

    /// Bytes of scratch memory that a launch of this operation wants; 0 for most. With `measure` the backend may try
    /// out here how to do it best, writing the outputs; without it, launches of this operation that were described
    /// before must stay as they are.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn scratch(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64> {
        let _ = (op, inputs, outputs, measure);
        Ok(0)
    }

    /// Runs one operation, or records it during a capture.
    ///
    /// # Errors
    /// What the device says; in a capture the capture is then invalid.
    fn launch(&mut self, launch: &Launch) -> Result<()>;

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

    /// Starts to record. `host` is what the first replay will bring: a device may record a place for
    /// it. It is not written now.
    ///
    /// # Errors
    /// What the device says; nothing is being captured then.
    fn begin_capture(&mut self, host: Option<&HostBlock>) -> Result<()>;

    /// Ends the recording. `retain` is memory that the executable keeps alive while it exists and
    /// while a launch of it runs. `None` when nothing was recorded.
    ///
    /// # Errors
    /// What the device says; the capture is over and nothing of it remains.
    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Executable>>>;

    /// As [`end_capture`](Self::end_capture), but the recording can run by several executables, one after the
    /// other, and share them: [`instantiate`](Self::instantiate) makes one, [`update`](Self::update) changes
    /// one. It must be kept while it is replayed.
    ///
    /// # Errors
    /// As [`end_capture`](Self::end_capture).
    fn end_recording(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Recording>>>;

    /// Makes an executable that runs this recording.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`]; what the device says.
    fn instantiate(&mut self, recording: &Arc<dyn Recording>) -> Result<Arc<dyn Executable>>;

    /// Lets an executable that [`instantiate`](Self::instantiate) made run another recording from its next
    /// replay on, host bytes included, with which the recording was captured: replays bring their own.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`]; what the device says: then [`Executable::runs`] tells what is left.
    fn update(&mut self, exec: &Arc<dyn Executable>, recording: &Arc<dyn Recording>) -> Result<Update>;

    /// Whether captures from now on keep what [`Executable::topology`] gives, where that costs time or
    /// memory.
    fn keep_topology(&mut self, on: bool) {
        let _ = on;
    }

    /// Drops the recording under way; nothing happens if there is none.
    fn abort_capture(&mut self);

    /// Opens a fork in the capture under way: what is recorded from here to its [`join`](Self::join) belongs
    /// to branches, which all wait for what was recorded before and for none of each other. Forks nest; a
    /// capture that ends or is abandoned closes its own.
    ///
    /// By default branches are recorded one after the other, which is right, only slower.
    ///
    /// # Errors
    /// What the device says; no fork is open then, and the capture is invalid.
    fn fork(&mut self) -> Result<()> {
        Ok(())
    }

    /// What is recorded from here on belongs to branch `index` of the innermost fork. Branches come in order,
    /// from 0.
    ///
    /// # Errors
    /// What the device says; the capture is then invalid.
    fn branch(&mut self, index: usize) -> Result<()> {
        let _ = index;
        Ok(())
    }

    /// Closes the innermost fork: what is recorded from here on waits for all its branches.
    ///
    /// # Errors
    /// What the device says; the fork is closed, and the capture is invalid.
    fn join(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether the capture under way, or the last one if there is none, failed because of something outside this
    /// runtime, such as a device-wide wait on another thread: making it again is then worth it.
    fn capture_was_spoilt(&self) -> bool {
        false
    }

    /// Runs an executable of this backend, after writing `block`.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn replay(&mut self, exec: &Arc<dyn Executable>, block: Option<HostBlock>) -> Result<()>;

    /// Overwrites freed memory with a pattern that shows (only in test mode; in a capture it is
    /// recorded like a launch).
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()>;

    /// For what only one backend can do.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether the core should call [`poison`](Self::poison) for what it frees.
    fn wants_poison(&self) -> bool;

    /// Waits for everything launched so far.
    ///
    /// # Errors
    /// What failed on the stream.
    fn synchronize(&mut self) -> Result<()>;
}

/// The error for a call that a capture forbids.
pub(crate) fn refused_in_capture(call: &'static str) -> Error {
    Error::RefusedInCapture { call }
}
