//! Captured graphs, and the resources that their launches need.

use std::{any::Any, fmt, sync::Arc};

use rustc_hash::FxHashSet;

use super::{
    Capture, CudaBackend,
    blas::Pin,
    conditional::BodiesOf,
    driver::{Exec, Function, Graph, GraphRef, KernelNode},
    graph_exec::CudaGraphExec,
    kernels::UploadSizeClass,
    shared::{Shared, retire_graph},
};
use crate::{
    Error, Result,
    backend::{CapturedGraph, GraphExec, SharedMemory, Signature},
    observe::inspect::Topology,
    value::owned::next_id,
};

/// The first kernel, whose parameter contains host values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) class: UploadSizeClass,
    pub(super) node: KernelNode,
}

/// A captured graph and the resources that it keeps alive.
pub(super) struct CudaCapturedGraph {
    id: u64,
    /// Dropped early where nothing needs it: see [`CudaCapturedGraph::is_final`].
    graph: Option<Arc<Graph>>,
    pub(super) head: Option<Head>,
    pub(super) nodes: usize,
    signature: Result<Signature, &'static str>,
    /// As the driver had it, if that was asked for.
    pub(super) topology: Option<Topology>,
    /// The bodies of its conditional nodes.
    pub(super) bodies: BodiesOf,
    /// Those with edges of dependent launch.
    pub(super) overlapped: Vec<GraphRef>,
    retain: Vec<SharedMemory>,
    /// Objects of users' libraries that its work uses.
    kept: Vec<Box<dyn Any + Send + Sync>>,
    /// The plans of its products: its body must not be planned again while it can be compared with it.
    _pins: Vec<Pin>,
    pub(super) shared: Arc<Shared>,
}

impl CudaCapturedGraph {
    pub(super) fn graph(&self) -> Option<&Arc<Graph>> {
        self.graph.as_ref()
    }

    /// No further executable is made of it. Only a replaced parameter needs the graph's nodes later.
    pub(super) fn is_final(&mut self) {
        self.bodies = BodiesOf::default();
        self.overlapped = Vec::new();
        if self.head.is_none() {
            self.graph = None;
        }
    }
}

impl CapturedGraph for CudaCapturedGraph {
    fn id(&self) -> u64 {
        self.id
    }

    fn signature(&self) -> Result<&Signature, &'static str> {
        self.signature.as_ref().map_err(|reason| *reason)
    }

    fn topology(&self) -> Result<Topology> {
        self.topology.clone().ok_or_else(|| Error::Config {
            what: "the topology of a recording".into(),
            reason: "the driver's graph is gone: turn `Runtime::keep_topology` on before it is recorded"
                .into(),
        })
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for CudaCapturedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaCapturedGraph")
            .field("id", &self.id)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

impl Drop for CudaCapturedGraph {
    fn drop(&mut self) {
        // Launches in flight use the memory.
        retire_graph(&self.shared, None, self.graph.take(), std::mem::take(&mut self.retain));
        for owner in self.kept.drain(..) {
            self.shared.retire_owner(owner);
        }
    }
}

impl CudaBackend {
    /// An executable of this backend.
    pub(super) fn own_exec<'e>(
        &self,
        call: &'static str,
        exec: &'e Arc<dyn GraphExec>,
    ) -> Result<&'e CudaGraphExec> {
        exec.as_any()
            .downcast_ref::<CudaGraphExec>()
            .filter(|exec| Arc::ptr_eq(&exec.shared, &self.shared))
            .ok_or_else(|| self.failed(call, "the executable was captured on another device".into()))
    }

    /// A recording of this backend.
    pub(super) fn own_graph(
        &self,
        call: &'static str,
        recording: &Arc<dyn CapturedGraph>,
    ) -> Result<Arc<CudaCapturedGraph>> {
        let own = Arc::clone(recording).into_any().downcast::<CudaCapturedGraph>().ok();
        own.filter(|own| Arc::ptr_eq(&own.shared, &self.shared))
            .ok_or_else(|| self.failed(call, "the recording was captured on another device".into()))
    }

    /// Ends the current capture. Returns `None` if nothing was recorded. With `lends`, it gets a signature,
    /// which takes several calls per node.
    pub(super) fn finish_capture(
        &mut self,
        capture: Capture,
        retain: Vec<SharedMemory>,
        lends: bool,
    ) -> Result<Option<CudaCapturedGraph>> {
        let graph = self.end_stream_capture(capture.root)?;
        let mut nodes = graph.len()?;
        for body in capture.bodies.values().flatten() {
            nodes += graph.len_of(*body)?;
        }
        if nodes == 0 {
            return Ok(None);
        }
        let head = self.head(&graph, capture.head)?;
        let overlapped = self.overlap_kernels(&graph, &capture.bodies)?;
        let topology = self.keeps_topology.then(|| self.topology(&graph, &capture.bodies)).transpose()?;
        let signature = match lends {
            true => graph.signature(head.as_ref().map(|head| &head.node))?,
            false => Err("it was captured for one executable"),
        };
        Ok(Some(CudaCapturedGraph {
            id: next_id(),
            graph: Some(Arc::new(graph)),
            head,
            nodes,
            signature,
            topology,
            bodies: capture.bodies,
            overlapped,
            retain,
            kept: capture.kept,
            _pins: capture.pins,
            shared: Arc::clone(&self.shared),
        }))
    }

    /// Ends the capture of the stream. Returns its graph: `root`, if the capture was ended before, to go on later.
    fn end_stream_capture(&mut self, root: Option<Graph>) -> Result<Graph> {
        let (invalidated, graph) = match root {
            None => self.shared.stream.end_capture(),
            Some(root) => match self.shared.stream.end_capture_of_known() {
                (true, ended) => {
                    // Nothing says who destroys the graph of such a capture.
                    root.leak();
                    let failed = || self.failed("cuStreamEndCapture", "the capture was invalidated".into());
                    (true, Err(ended.err().unwrap_or_else(failed)))
                }
                (false, ended) => (false, ended.map(|()| root)),
            },
        };
        // Between the question before this and the end, too.
        self.invalidated |= invalidated;
        graph
    }

    /// The kernel that uploads the host values of a graph, if it begins with one.
    fn head(&mut self, graph: &Graph, class: Option<UploadSizeClass>) -> Result<Option<Head>> {
        let Some(class) = class else { return Ok(None) };
        let function = self.function(class.kernel(), 0)?;
        Ok(graph.find(function)?.map(|node| Head { class, node }))
    }

    /// Lets kernels that wait for earlier ones by themselves begin before those have ended. Returns the bodies in which one
    /// does.
    fn overlap_kernels(&mut self, graph: &Graph, bodies: &BodiesOf) -> Result<Vec<GraphRef>> {
        let waiting: FxHashSet<Function> = self
            .functions
            .iter()
            .filter(|(kernel, _)| kernel.unit.source.waits)
            .map(|(_, &(function, _))| function)
            .collect();
        graph.overlap(|function| waiting.contains(&function))?;
        self.overlap_bodies(graph, bodies, |function| waiting.contains(&function))
    }

    /// Instantiates the graph; also returns how many bytes of device memory that took.
    pub(super) fn make_exec(&mut self, graph: &Graph) -> Result<(Exec, u64)> {
        let (before, _) = self.shared.context.memory()?;
        let exec = match graph.instantiate(&self.shared.stream) {
            Err(Error::OutOfMemory { .. }) => {
                self.reclaim()?;
                graph.instantiate(&self.shared.stream)?
            }
            other => other?,
        };
        let (after, _) = self.shared.context.memory()?;
        Ok((exec, before.saturating_sub(after)))
    }
}
