//! Captured graphs and how they run. Several can share one executable, which is updated in place.

use std::{any::Any, fmt, sync::Arc};

use super::{HostBlock, SharedMemory};
use crate::{Result, observe::inspect::Topology};

/// A captured graph, ready to run.
pub trait GraphExec: Send + Sync + fmt::Debug {
    /// Number of nodes.
    fn nodes(&self) -> usize;
    /// Bytes of device and driver memory that it holds, as far as they are known.
    fn bytes(&self) -> u64;
    /// Its nodes and what waits for what, as the device has them.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) when the backend was not told to keep them: see
    /// [`Diagnostics::keep_topology`](super::Diagnostics::keep_topology).
    fn topology(&self) -> Result<Topology>;
    /// The [`CapturedGraph::id`] of what its next replay runs. `None` for one that [`Graphs::end_capture`](super::Graphs::end_capture) made,
    /// which runs one recording for ever; and while nothing can be replayed by it, because that recording is
    /// gone or an update broke off.
    fn runs(&self) -> Option<u64>;
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// What two recordings must have in common, so that one executable can run either: for each node its kind, the
/// kernel, its block, shared memory and attributes; the edges, and how each orders. Grids, addresses and the rest
/// of the parameters may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(Arc<[u64]>);

impl Signature {
    /// The words that say it, as a backend chooses them; equal words mean that an update may be tried.
    pub fn new(words: Vec<u64>) -> Self {
        Self(words.into())
    }
}

/// A captured graph, and the memory that its launches need. An executable that runs it does not keep it: who
/// replays it does.
pub trait CapturedGraph: Send + Sync + fmt::Debug {
    /// Its number; never given twice in a process.
    fn id(&self) -> u64;

    /// What others must have, too, to share an executable with it.
    ///
    /// # Errors
    /// Why no other can, in a few words.
    fn signature(&self) -> Result<&Signature, &'static str>;

    /// Its nodes and what waits for what, as the device has them.
    ///
    /// # Errors
    /// As [`GraphExec::topology`](super::GraphExec::topology).
    fn topology(&self) -> Result<Topology>;

    /// For the backend that made it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What came of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// From the next replay on the executable runs that recording; replays under way run what they were launched
    /// with.
    Done,
    /// It cannot run it. It runs what it ran before.
    Refused {
        /// What the device says.
        why: String,
    },
}

/// Captures, and the graphs that come of them.
///
/// One capture is under way at a time. From [`begin_capture`](Self::begin_capture) to its end,
/// [`Stream::launch`](super::Stream::launch) records; [`instantiate`](Self::instantiate), [`update`](Self::update)
/// and [`replay`](Self::replay) are refused.
pub trait Graphs {
    /// Starts to record. `host` is what the first replay will bring: a device may record a place for
    /// it. It is not written now.
    ///
    /// # Errors
    /// What the device says; nothing is being captured then.
    fn begin_capture(&mut self, host: Option<&HostBlock>) -> Result<()>;

    /// Opens a fork in the capture under way: what is recorded from here to its [`join`](Self::join) belongs
    /// to branches, which all wait for what was recorded before and for none of each other. Forks nest; a
    /// capture that ends or is abandoned closes its own.
    ///
    /// A device that cannot run branches side by side records them one after the other, which is right, only slower.
    ///
    /// # Errors
    /// What the device says; no fork is open then, and the capture is invalid.
    fn fork(&mut self) -> Result<()>;

    /// What is recorded from here on belongs to branch `index` of the innermost fork. Branches come in order,
    /// from 0.
    ///
    /// # Errors
    /// What the device says; the capture is then invalid.
    fn branch(&mut self, index: usize) -> Result<()>;

    /// Closes the innermost fork: what is recorded from here on waits for all its branches.
    ///
    /// # Errors
    /// What the device says; the fork is closed, and the capture is invalid.
    fn join(&mut self) -> Result<()>;

    /// Ends the recording. `retain` is memory that the executable keeps alive while it exists and
    /// while a launch of it runs. `None` when nothing was recorded.
    ///
    /// # Errors
    /// What the device says; the capture is over and nothing of it remains.
    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>>;

    /// As [`end_capture`](Self::end_capture), but the recording can run by several executables, one after the
    /// other, and share them: [`instantiate`](Self::instantiate) makes one, [`update`](Self::update) changes
    /// one. It must be kept while it is replayed.
    ///
    /// # Errors
    /// As [`end_capture`](Self::end_capture).
    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>>;

    /// Drops the recording under way; nothing happens if there is none.
    fn abort_capture(&mut self);

    /// Whether the capture under way, or the last one if there is none, failed because of something outside this
    /// runtime, such as a device-wide wait on another thread: making it again is then worth it.
    fn capture_was_invalidated(&self) -> bool;

    /// Makes an executable that runs this recording.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`](crate::Error::RefusedInCapture); what the device says.
    fn instantiate(&mut self, recording: &Arc<dyn CapturedGraph>) -> Result<Arc<dyn GraphExec>>;

    /// Lets an executable that [`instantiate`](Self::instantiate) made run another recording from its next
    /// replay on, host bytes included, with which the recording was captured: replays bring their own.
    ///
    /// # Errors
    /// [`Error::RefusedInCapture`](crate::Error::RefusedInCapture); what the device says: then [`GraphExec::runs`] tells what is left.
    fn update(&mut self, exec: &Arc<dyn GraphExec>, recording: &Arc<dyn CapturedGraph>) -> Result<Update>;

    /// Runs an executable of this backend, after writing `block`.
    ///
    /// # Errors
    /// As [`launch`](super::Stream::launch).
    fn replay(&mut self, exec: &Arc<dyn GraphExec>, block: Option<HostBlock>) -> Result<()>;
}
