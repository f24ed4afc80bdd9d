//! A backend that notes what the core says to it.

use std::sync::{Arc, Mutex};

use graphable::{
    Passes, Result, Runtime,
    backend::{
        Arenas, Backend, CapturedGraph, Diagnostics, GraphExec, Graphs, HostUpload, Launch, SharedMemory,
        Stream, View, delegate,
        faulty::{FaultPlan, FaultyBackend},
    },
};

use crate::support::options;

pub(crate) type Ranges = Vec<(u64, u64)>;

/// What a backend was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Begin,
    End,
    Abort,
    Fork,
    Branch(usize),
    Join,
    Launch { op: &'static str, reads: Ranges, writes: Ranges },
}

impl Said {
    fn short(&self) -> String {
        match self {
            Self::Launch { op, .. } => (*op).to_owned(),
            Self::Branch(index) => format!("branch {index}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

pub(crate) type Heard = Arc<Mutex<Vec<Said>>>;

/// Listens to what the core says to a backend.
#[derive(Debug)]
struct Listening {
    inner: Box<dyn Backend>,
    heard: Heard,
}

impl Listening {
    fn note(&self, said: Said) {
        self.heard.lock().unwrap().push(said);
    }
}

impl Stream for Listening {
    delegate!(
        inner: supports, workspace, host_write, read, write_from, read_into, mark, poison, wants_poison, synchronize
    );

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let ranges = |views: &[View]| views.iter().map(View::range).collect();
        let (reads, writes) = (ranges(&launch.inputs), ranges(&launch.outputs));
        self.note(Said::Launch { op: launch.op.name(), reads, writes });
        self.inner.launch(launch)
    }
}

impl Arenas for Listening {
    delegate!(
        inner: reserve, commit, guard_page, commit_block, uncommit, alloc, map_file, blocks_in_tiles, host_memory, host_log, keep, release
    );
}

impl Graphs for Listening {
    delegate!(inner: capture_was_invalidated, instantiate, update, replay);
    delegate!(inner: supports_conditionals, begin_conditional, begin_body, end_conditional);

    fn begin_capture(&mut self, host: Option<&HostUpload>) -> Result<()> {
        self.note(Said::Begin);
        self.inner.begin_capture(host)
    }

    fn fork(&mut self) -> Result<()> {
        self.note(Said::Fork);
        self.inner.fork()
    }

    fn branch(&mut self, index: usize) -> Result<()> {
        self.note(Said::Branch(index));
        self.inner.branch(index)
    }

    fn join(&mut self) -> Result<()> {
        self.note(Said::Join);
        self.inner.join()
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>> {
        self.note(Said::End);
        self.inner.end_capture(retain)
    }

    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>> {
        self.note(Said::End);
        self.inner.end_capture_shared(retain)
    }

    fn abort_capture(&mut self) {
        self.note(Said::Abort);
        self.inner.abort_capture();
    }
}

impl Diagnostics for Listening {
    delegate!(
        inner: name, device_memory, eager_graphs, staging_waits, caches, clear_caches, clear_disk_cache, keep_topology
    );
}

impl Backend for Listening {
    delegate!(inner: as_any);
}

pub(crate) fn listening() -> (Runtime, Heard, Arc<FaultPlan>) {
    let (heard, plan) = (Heard::default(), Arc::new(FaultPlan::default()));
    let inner = FaultyBackend::new(crate::device::backend(options()), Arc::clone(&plan));
    let listening = Listening { inner: Box::new(inner), heard: Arc::clone(&heard) };
    let rt = Runtime::with_backend(Box::new(listening)).unwrap();
    rt.keep_events(true);
    // What the body asks for is heard, operation by operation.
    rt.set_passes(Passes::none());
    (rt, heard, plan)
}

pub(crate) fn take(heard: &Heard) -> Vec<Said> {
    std::mem::take(&mut *heard.lock().unwrap())
}

/// The launches, and what of captures and forks lies between them.
pub(crate) fn shorts(said: &[Said]) -> Vec<String> {
    said.iter().map(Said::short).collect()
}

/// Where the operations called `op` wrote, in order.
pub(crate) fn written(said: &[Said], op: &str) -> Vec<u64> {
    let writes = said.iter().filter_map(|s| match s {
        Said::Launch { op: o, writes, .. } if *o == op => Some(writes[0].0),
        _ => None,
    });
    writes.collect()
}
