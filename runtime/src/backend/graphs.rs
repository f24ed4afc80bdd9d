//! Captured graphs and their execution. Several captured graphs can share one executable, which is updated in
//! place.

use std::{any::Any, fmt, sync::Arc};

use super::{Conditional, HostUpload, SharedMemory};
use crate::{Result, observe::inspect::Topology};

/// A captured graph, ready to run.
pub trait GraphExec: Send + Sync + fmt::Debug {
    /// Returns the number of nodes.
    fn nodes(&self) -> usize;
    /// Returns the number of bytes of device and driver memory that it uses, as far as known.
    fn bytes(&self) -> u64;
    /// Returns its nodes and their dependencies, as the device sees them.
    ///
    /// # Errors
    /// Returns [`Error::Config`](crate::Error::Config) if the backend was not set to keep them: see
    /// [`Diagnostics::keep_topology`](super::Diagnostics::keep_topology).
    fn topology(&self) -> Result<Topology>;
    /// Returns the [`CapturedGraph::id`] of the graph that its next replay runs. `None` for an executable
    /// made by [`Graphs::end_capture`](super::Graphs::end_capture), which is permanently bound to one graph;
    /// and while nothing can be replayed, because that graph was dropped or an update failed midway.
    fn runs(&self) -> Option<u64>;
    /// Downcasting, for the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// The properties that two captured graphs must share so that one executable can run either: the kind of each node, the
/// attributes and clusters of kernels, the edges, and how each edge orders its ends. Kernels, their grids and blocks, addresses and other
/// parameters may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(Arc<[u64]>);

impl Signature {
    /// Creates a signature from words that the backend chooses; equal words mean that an update may be tried.
    pub fn new(words: Vec<u64>) -> Self {
        Self(words.into())
    }
}

/// A captured graph, and the memory that its launches need. An executable that runs it does not keep it
/// alive; its user must.
pub trait CapturedGraph: Send + Sync + fmt::Debug {
    /// Returns its id, which is never reused within a process.
    fn id(&self) -> u64;

    /// Returns the properties that others must share in order to use the same executable.
    ///
    /// # Errors
    /// Returns a short reason why no other graph can.
    fn signature(&self) -> Result<&Signature, &'static str>;

    /// Returns its nodes and their dependencies, as the device sees them.
    ///
    /// # Errors
    /// See [`GraphExec::topology`](super::GraphExec::topology).
    fn topology(&self) -> Result<Topology>;

    /// Downcasting, for the backend that made it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// From the next replay on, the executable runs that graph; replays in flight run what they were launched
    /// with.
    Done,
    /// The executable cannot run that graph. It runs the same graph as before.
    Refused {
        /// The device's message.
        reason: String,
    },
}

/// Captures, and the graphs that result from them.
///
/// A capture ends in one of two ways, because an executable that runs one graph only is cheaper: it owns the
/// memory of its launches, the device's own graph can be dropped as soon as it is instantiated, and no
/// [`Signature`] is computed, which takes a GPU several driver calls for each node.
///
/// There is one capture at a time. From [`begin_capture`](Self::begin_capture) to its end,
/// [`Stream::launch`](super::Stream::launch) records; [`instantiate`](Self::instantiate),
/// [`update`](Self::update) and [`replay`](Self::replay) are not allowed.
pub trait Graphs {
    /// Starts a capture. `host` describes the bytes that the first replay will supply, for which a device may
    /// record a place. They are not written now.
    ///
    /// # Errors
    /// Returns errors of the device; no capture is then active.
    fn begin_capture(&mut self, host: Option<&HostUpload>) -> Result<()>;

    /// Opens a fork in the current capture: work recorded from here to the matching [`join`](Self::join)
    /// belongs to branches, each of which waits for the work recorded before, but not for the other branches.
    /// Forks nest; a capture that ends or is aborted closes its forks.
    ///
    /// A device that cannot run branches in parallel records them one after the other, which is correct, but
    /// slower.
    ///
    /// # Errors
    /// Returns errors of the device; no fork is then open, and the capture is invalid.
    fn fork(&mut self) -> Result<()>;

    /// Starts branch `index` of the innermost fork, to which subsequent work belongs. Branches are recorded
    /// in order, from 0.
    ///
    /// # Errors
    /// Returns errors of the device; the capture is then invalid.
    fn branch(&mut self, index: usize) -> Result<()>;

    /// Closes the innermost fork: work recorded from here on waits for all its branches.
    ///
    /// # Errors
    /// Returns errors of the device; the fork is closed, and the capture is invalid.
    fn join(&mut self) -> Result<()>;

    /// Checks that the device has conditional nodes.
    ///
    /// # Errors
    /// Returns [`Error::NoConditionalNodes`](crate::Error::NoConditionalNodes).
    fn supports_conditionals(&self) -> Result<()>;

    /// Opens a conditional node in the current capture. Its bodies follow, each begun by
    /// [`begin_body`](Self::begin_body), in order and all of them; the node waits for the work recorded before
    /// it. Nodes nest, and forks may be opened in a body, which closes them. A capture that is aborted closes its
    /// nodes.
    ///
    /// # Errors
    /// Returns [`Error::NoConditionalNodes`](crate::Error::NoConditionalNodes), and errors of the device; the
    /// capture is then invalid.
    fn begin_conditional(&mut self, node: &Conditional) -> Result<()>;

    /// Starts body `index` of the innermost conditional node, to which subsequent work belongs.
    ///
    /// # Errors
    /// Returns errors of the device; the capture is then invalid.
    fn begin_body(&mut self, index: usize) -> Result<()>;

    /// Closes the innermost conditional node: work recorded from here on waits for it.
    ///
    /// # Errors
    /// Returns errors of the device; the capture is then invalid.
    fn end_conditional(&mut self) -> Result<()>;

    /// Ends the capture. `retain` is memory that the executable keeps alive while it exists and while one of
    /// its launches runs. Returns `None` if nothing was recorded.
    ///
    /// # Errors
    /// Returns errors of the device; the capture has then ended without any result.
    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>>;

    /// Like [`end_capture`](Self::end_capture), but the graph can run through several executables over time,
    /// and share them with other graphs: [`instantiate`](Self::instantiate) makes an executable, and
    /// [`update`](Self::update) changes one. The graph must be kept alive while it is replayed.
    ///
    /// # Errors
    /// See [`end_capture`](Self::end_capture).
    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>>;

    /// Drops the current capture; does nothing if there is none.
    fn abort_capture(&mut self);

    /// Returns whether the current capture, or the last one if there is none, failed because of something
    /// outside this runtime, such as a device-wide wait on another thread, so that a retry is worthwhile.
    fn capture_was_invalidated(&self) -> bool;

    /// Makes an executable that runs this graph.
    ///
    /// # Errors
    /// Returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture), and errors of the device.
    fn instantiate(&mut self, recording: &Arc<dyn CapturedGraph>) -> Result<Arc<dyn GraphExec>>;

    /// Makes an executable from [`instantiate`](Self::instantiate) run a different graph from its next replay
    /// on, including the host bytes with which that graph was captured; replays supply their own.
    ///
    /// # Errors
    /// Returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture), and errors of the device;
    /// [`GraphExec::runs`] then returns what the executable can still run.
    fn update(&mut self, exec: &Arc<dyn GraphExec>, recording: &Arc<dyn CapturedGraph>) -> Result<Update>;

    /// Runs an executable of this backend, after writing `block`.
    ///
    /// # Errors
    /// See [`launch`](super::Stream::launch).
    fn replay(&mut self, exec: &Arc<dyn GraphExec>, block: Option<HostUpload>) -> Result<()>;
}
