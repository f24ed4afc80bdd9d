//! Executables: instantiated graphs that can be launched.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    captured_graph::{CudaCapturedGraph, Head},
    driver::{Exec, Graph, Updated},
    shared::{Shared, retire_graph},
};
use crate::{
    Error, Result,
    backend::{CapturedGraph, GraphExec, HostUpload, Update},
    observe::inspect::Topology,
};

/// The graph that an executable runs.
enum Runs {
    /// One recording, which it keeps.
    Own(Arc<CudaCapturedGraph>),
    /// Recordings that others keep, one after the other. `None` after an update that broke off.
    Borrowed(Mutex<Option<Weak<CudaCapturedGraph>>>),
}

/// A graph that can be launched.
pub(super) struct CudaGraphExec {
    /// Taken when it is retired.
    exec: Option<Exec>,
    /// The graph from which it was instantiated, whatever it runs now: the driver identifies its nodes by
    /// that graph's.
    graph: Option<Arc<Graph>>,
    /// The first kernel, by that graph.
    head: Option<Head>,
    runs: Runs,
    /// Set if the head currently writes something.
    armed: AtomicBool,
    nodes: usize,
    bytes: u64,
    pub(super) shared: Arc<Shared>,
}

impl CudaGraphExec {
    /// Of a recording that it keeps.
    pub(super) fn owning(mut recording: CudaCapturedGraph, exec: Exec, bytes: u64) -> Self {
        recording.is_final();
        let recording = Arc::new(recording);
        Self::new(&recording, Runs::Own(Arc::clone(&recording)), exec, bytes)
    }

    /// Of a recording that others keep.
    pub(super) fn borrowing(recording: &Arc<CudaCapturedGraph>, exec: Exec, bytes: u64) -> Self {
        let runs = Runs::Borrowed(Mutex::new(Some(Arc::downgrade(recording))));
        Self::new(recording, runs, exec, bytes)
    }

    fn new(recording: &CudaCapturedGraph, runs: Runs, exec: Exec, bytes: u64) -> Self {
        Self {
            exec: Some(exec),
            graph: recording.graph().cloned(),
            head: recording.head,
            runs,
            // Recorded with the values of the call that recorded it.
            armed: AtomicBool::new(recording.head.is_some()),
            nodes: recording.nodes,
            bytes,
            shared: Arc::clone(&recording.shared),
        }
    }

    /// Returns the graph that its next launch runs.
    fn recording(&self) -> Option<Arc<CudaCapturedGraph>> {
        match &self.runs {
            Runs::Own(recording) => Some(Arc::clone(recording)),
            Runs::Borrowed(current) => {
                current.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
            }
        }
    }

    /// Returns whether `block` fits into the head's parameter.
    pub(super) fn takes(&self, block: &HostUpload, large: bool) -> bool {
        match (self.head, super::UploadSizeClass::of(block, large)) {
            (Some(head), Some(need)) => need.bytes <= head.class.bytes,
            _ => false,
        }
    }

    /// Lets later launches run another recording.
    ///
    /// # Errors
    /// Returns errors of the driver; then nothing can be launched before an update succeeds.
    pub(super) fn update(&self, recording: &Arc<CudaCapturedGraph>) -> Result<Update> {
        let refused = |reason: &str| Ok(Update::Refused { reason: reason.into() });
        let (Runs::Borrowed(current), Some(exec), Some(graph)) = (&self.runs, &self.exec, recording.graph())
        else {
            return refused("it was made for one recording");
        };
        let same_head = match (&self.head, &recording.head) {
            (None, None) => true,
            (Some(a), Some(b)) => a.class == b.class,
            _ => false,
        };
        if !same_head {
            return refused("host inputs travel in another way");
        }
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = current.take();
        match exec.update(graph)? {
            Updated::Done => {
                *current = Some(Arc::downgrade(recording));
                // With the values of the call that recorded it, which are old by now.
                self.armed.store(self.head.is_some(), Ordering::Relaxed);
                Ok(Update::Done)
            }
            Updated::Refused(reason) => {
                *current = before;
                refused(reason)
            }
            Updated::Broken(reason) => refused(reason),
        }
    }

    /// Launches, with `block` as the head's parameter. `params` is memory that is used again.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn launch(&self, block: Option<&HostUpload>, params: &mut Vec<u8>) -> Result<()> {
        let Some(exec) = &self.exec else { return Ok(()) };
        // Its memory is kept at least until the launch is on the stream; from then on, released memory is
        // freed after it.
        let Some(recording) = self.recording() else {
            return Err(Error::Device {
                device: self.shared.context.name().to_owned(),
                call: "replay",
                reason: "the recording that it ran last is gone, or an update broke off".into(),
            });
        };
        if let (Some(head), Some(now)) = (self.head, recording.head) {
            let node = head.node.launching(&now.node);
            match block {
                Some(block) => {
                    head.class.pack(block, params);
                    exec.set_params(&node, params)?;
                    self.armed.store(true, Ordering::Relaxed);
                }
                None if self.armed.load(Ordering::Relaxed) => {
                    // The values that it would write are outdated.
                    head.class.empty(params);
                    exec.set_params(&node, params)?;
                    self.armed.store(false, Ordering::Relaxed);
                }
                None => {}
            }
        }
        exec.launch(&self.shared.stream)
    }
}

impl GraphExec for CudaGraphExec {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn topology(&self) -> Result<Topology> {
        match self.recording() {
            Some(recording) => recording.topology(),
            None => Err(Error::Config {
                what: "the topology of an executable".into(),
                reason: "the recording that it ran last is gone".into(),
            }),
        }
    }

    fn runs(&self) -> Option<u64> {
        match self.runs {
            Runs::Own(_) => None,
            Runs::Borrowed(_) => Some(self.recording()?.id()),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CudaGraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaGraphExec").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Drop for CudaGraphExec {
    fn drop(&mut self) {
        // This precedes the graph that it runs, which is released after it.
        retire_graph(&self.shared, self.exec.take(), self.graph.take(), Vec::new());
    }
}
