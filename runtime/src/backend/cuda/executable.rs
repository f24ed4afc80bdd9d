//! Recordings as executables.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    driver::{Exec, Graph, KernelNode},
    kernels::PutClass,
    shared::{Shared, retire_graph},
};
use crate::{
    Error, Result,
    backend::{Executable, HostBlock, SharedMemory},
    inspect::Topology,
};

/// The first kernel, whose parameter carries host values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) class: PutClass,
    pub(super) node: KernelNode,
}

/// A graph that can be launched, and what it keeps alive.
pub(super) struct CudaExecutable {
    /// Taken when it is retired.
    exec: Option<Exec>,
    /// Kept for its first node; dropped with the executable.
    graph: Option<Graph>,
    head: Option<Head>,
    /// Whether the head writes something now.
    armed: AtomicBool,
    nodes: usize,
    bytes: u64,
    retain: Vec<SharedMemory>,
    /// As the driver had it, if that was asked for.
    topology: Option<Topology>,
    pub(super) shared: Arc<Shared>,
}

impl CudaExecutable {
    pub(super) fn new(
        shared: &Arc<Shared>,
        exec: Exec,
        graph: Graph,
        head: Option<Head>,
        (nodes, bytes): (usize, u64),
        retain: Vec<SharedMemory>,
        topology: Option<Topology>,
    ) -> Self {
        // Recorded with the values of the call that recorded it.
        let armed = AtomicBool::new(head.is_some());
        // Only a replaced parameter needs the graph's nodes later.
        let graph = head.is_some().then_some(graph);
        Self {
            exec: Some(exec),
            graph,
            head,
            armed,
            nodes,
            bytes,
            retain,
            topology,
            shared: Arc::clone(shared),
        }
    }

    /// Whether `block` can travel as the head's parameter.
    pub(super) fn takes(&self, block: &HostBlock, large: bool) -> bool {
        match (self.head, PutClass::of(block, large)) {
            (Some(head), Some(need)) => need.bytes <= head.class.bytes,
            _ => false,
        }
    }

    /// Launches, with `block` as the head's parameter. `params` is memory that is used again.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn launch(&self, block: Option<&HostBlock>, params: &mut Vec<u8>) -> Result<()> {
        let Some(exec) = &self.exec else { return Ok(()) };
        if let Some(head) = self.head {
            match block {
                Some(block) => {
                    head.class.pack(block, params);
                    exec.set_params(&head.node, params)?;
                    self.armed.store(true, Ordering::Relaxed);
                }
                None if self.armed.load(Ordering::Relaxed) => {
                    // What it would write is old by now.
                    head.class.empty(params);
                    exec.set_params(&head.node, params)?;
                    self.armed.store(false, Ordering::Relaxed);
                }
                None => {}
            }
        }
        exec.launch(&self.shared.stream)
    }
}

impl Executable for CudaExecutable {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn topology(&self) -> Result<Topology> {
        self.topology.clone().ok_or_else(|| Error::Config {
            what: "the topology of a recording".into(),
            why: "the driver's graph is gone: turn `Runtime::keep_topology` on before it is recorded".into(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CudaExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaExecutable").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Drop for CudaExecutable {
    fn drop(&mut self) {
        retire_graph(&self.shared, self.exec.take(), self.graph.take(), std::mem::take(&mut self.retain));
    }
}
