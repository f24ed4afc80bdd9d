//! A backend that notes what the core says to it.

use std::{
    any::Any,
    sync::{Arc, Mutex},
};

use graphable::{
    Result, Runtime,
    backend::{
        Arena, Backend, Executable, HostBlock, Launch, Mark, Op, PendingBytes, Recording, SharedMemory,
        Update, View,
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

impl Backend for Listening {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        self.inner.reserve(at_least)
    }
    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        self.inner.commit(arena, bytes)
    }
    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        self.inner.uncommit(arena, bytes)
    }
    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        self.inner.device_memory()
    }
    fn staging_waits(&self) -> u64 {
        self.inner.staging_waits()
    }

    fn mark(&mut self) -> Result<Arc<dyn Mark>> {
        self.inner.mark()
    }

    fn eager_graphs(&self) -> (usize, u64) {
        self.inner.eager_graphs()
    }
    fn release(&mut self) {
        self.inner.release();
    }
    fn guard_page(&self) -> u64 {
        self.inner.guard_page()
    }
    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        self.inner.commit_block(arena, addr, bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.inner.alloc(bytes)
    }
    fn scratch(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64> {
        self.inner.scratch(op, inputs, outputs, measure)
    }
    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let ranges = |views: &[View]| views.iter().map(View::range).collect();
        let (reads, writes) = (ranges(&launch.inputs), ranges(&launch.outputs));
        self.note(Said::Launch { op: launch.op.name(), reads, writes });
        self.inner.launch(launch)
    }
    fn host_write(&mut self, block: HostBlock) -> Result<()> {
        self.inner.host_write(block)
    }
    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.inner.read(addr, bytes)
    }
    fn begin_capture(&mut self, host: Option<&HostBlock>) -> Result<()> {
        self.note(Said::Begin);
        self.inner.begin_capture(host)
    }
    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Executable>>> {
        self.note(Said::End);
        self.inner.end_capture(retain)
    }
    fn end_recording(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Recording>>> {
        self.note(Said::End);
        self.inner.end_recording(retain)
    }
    fn instantiate(&mut self, recording: &Arc<dyn Recording>) -> Result<Arc<dyn Executable>> {
        self.inner.instantiate(recording)
    }
    fn update(&mut self, exec: &Arc<dyn Executable>, recording: &Arc<dyn Recording>) -> Result<Update> {
        self.inner.update(exec, recording)
    }
    fn keep_topology(&mut self, on: bool) {
        self.inner.keep_topology(on);
    }
    fn abort_capture(&mut self) {
        self.note(Said::Abort);
        self.inner.abort_capture();
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
    fn capture_was_spoilt(&self) -> bool {
        self.inner.capture_was_spoilt()
    }
    fn replay(&mut self, exec: &Arc<dyn Executable>, block: Option<HostBlock>) -> Result<()> {
        self.inner.replay(exec, block)
    }
    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        self.inner.poison(addr, bytes)
    }
    fn as_any(&self) -> Option<&dyn Any> {
        self.inner.as_any()
    }
    fn wants_poison(&self) -> bool {
        self.inner.wants_poison()
    }
    fn synchronize(&mut self) -> Result<()> {
        self.inner.synchronize()
    }
}

pub(crate) fn listening() -> (Runtime, Heard, Arc<FaultPlan>) {
    let (heard, plan) = (Heard::default(), Arc::new(FaultPlan::default()));
    let inner = FaultyBackend::new(crate::device::backend(options()), Arc::clone(&plan));
    let listening = Listening { inner: Box::new(inner), heard: Arc::clone(&heard) };
    let rt = Runtime::with_backend(Box::new(listening)).unwrap();
    rt.keep_events(true);
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
