//! The CPU as a device: a real asynchronous stream, with capture that executes nothing.
//!
//! One thread owns the memory and executes the commands that it receives, in order (`stream`). Callers hold
//! addresses (`memory`); kernels convert them to slices through checks (`access`). A capture collects
//! launches unchanged, and a replay is one command that runs them (`graph`), in test mode in a random order
//! (`order`). Branches of a fork run one after the other; test mode rejects those that share memory which one
//! of them writes, since other devices run them in parallel.

use std::{any::Any, fmt, ops::Range, sync::Arc};

mod access;
mod conditional;
mod deferred_free;
mod errors;
mod fault;
mod free_list;
mod graph;
mod handle;
mod host_log;
mod host_memory;
pub(crate) mod kernels;
mod mapped_file;
mod mark;
mod memory;
mod order;
mod reply;
mod stream;

#[cfg(test)]
mod tests;

pub use self::mapped_file::MappedFile;

pub(crate) use self::{
    access::Access,
    fault::Fault,
    kernels::{PARALLEL, Scalar, TASK, Walk},
};
use self::{
    conditional::{ConditionalNode, OpenConditional, Sequence},
    errors::{NAME, failed},
    graph::{CpuCapturedGraph, CpuGraphExec, Graph, Node},
    handle::Handle,
    host_log::CpuHostLog,
    host_memory::{CpuHostMemory, CpuHostSource},
    memory::Block,
    order::Path,
    stream::{Command, CpuStream},
};
use super::{
    Arena, Arenas, Backend, CapturedGraph, Conditional, Diagnostics, GraphExec, Graphs, HostCopy, HostLog,
    HostMemory, HostUpload, Launch, Mark, Op, PendingBytes, SharedMemory, Stream, Update, View,
    refused_in_capture,
};
use crate::{CacheStats, Error, Result};

/// Options of the CPU device: `CpuOptions::default().threads(2)`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Detects mistakes that would fail on a GPU: nodes of a replay run in a random order, as far as they are
    /// independent, and new or freed memory is filled with NaNs. The value is the seed of the orders: equal
    /// seeds and equal calls produce equal orders.
    pub test_mode: Option<u64>,
    /// Threads that compute, at least 1; `None` is one per core. Results do not depend on it.
    pub threads: Option<usize>,
}

impl CpuOptions {
    /// Turns the [test mode](Self::test_mode) on, with this seed.
    pub fn test_mode(mut self, seed: u64) -> Self {
        self.test_mode = Some(seed);
        self
    }

    /// Sets the number of [threads](Self::threads); 0 is refused when the device is opened.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// The CPU as a [`Backend`].
///
/// Dropping it finishes the queued work, so pending reads get their bytes. Memory and executables may be
/// dropped before or after it, on any thread.
pub struct CpuBackend {
    stream: CpuStream,
    test_mode: bool,
    /// Arenas made so far.
    arenas: usize,
    capture: Option<Capture>,
}

/// The current capture.
#[derive(Default)]
struct Capture {
    /// The part of a capture that is in no body.
    main: Sequence,
    /// The conditional nodes that are open, the innermost last.
    open: Vec<OpenConditional>,
    /// Forks opened so far.
    forks: u32,
}

impl Capture {
    /// The nodes of which the next one is; `None` between the bodies of a conditional node.
    fn current(&mut self) -> Option<&mut Sequence> {
        match self.open.last_mut() {
            None => Some(&mut self.main),
            Some(open) => open.bodies.last_mut(),
        }
    }
}

impl CpuBackend {
    /// Starts the stream.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for zero threads; [`Error::NoDevice`] if no thread can be started.
    pub fn new(options: CpuOptions) -> Result<Self> {
        if options.threads == Some(0) {
            return Err(Error::Config {
                what: "CpuOptions::threads".into(),
                reason: "0 threads compute nothing; use at least 1, or `None` for one per core".into(),
            });
        }
        Ok(Self {
            stream: CpuStream::new(options.threads, options.test_mode)?,
            test_mode: options.test_mode.is_some(),
            arenas: 0,
            capture: None,
        })
    }

    /// Returns an error if `call` is not allowed now.
    fn outside_capture(&self, call: &'static str) -> Result<()> {
        match self.capture {
            Some(_) => Err(refused_in_capture(call)),
            None => self.stream.check(),
        }
    }

    fn open_capture(&mut self, call: &'static str) -> Result<&mut Capture> {
        self.capture.as_mut().ok_or_else(|| failed(call, "no capture is under way".into()))
    }

    /// The nodes of which the next one of the current capture is.
    fn open_sequence(&mut self, call: &'static str) -> Result<&mut Sequence> {
        let sequence = self.open_capture(call)?.current();
        sequence.ok_or_else(|| failed(call, "no body of the conditional node has begun".into()))
    }

    /// Runs or records.
    fn submit(&mut self, node: Node) -> Result<()> {
        if self.capture.is_some() {
            self.open_sequence("launch")?.push(node);
            return Ok(());
        }
        self.stream.send(Command::Run(Box::new(node)))
    }

    /// Ends the current capture.
    fn finish(
        &mut self,
        call: &'static str,
        retain: Vec<SharedMemory>,
    ) -> Result<Option<(Graph, Vec<Path>)>> {
        let capture = self.capture.take();
        self.stream.check()?;
        let capture = capture.ok_or_else(|| failed(call, "no capture is under way".into()))?;
        if !capture.open.is_empty() {
            return Err(failed(call, "a conditional node is still open".into()));
        }
        capture.main.check_end(self.test_mode).map_err(|reason| failed(call, reason))?;
        let Sequence { nodes, paths, .. } = capture.main;
        if nodes.is_empty() {
            return Ok(None);
        }
        Ok(Some((Graph::new(nodes, self.test_mode, retain), paths)))
    }

    /// An executable of this stream.
    fn own_exec<'e>(&self, call: &'static str, exec: &'e Arc<dyn GraphExec>) -> Result<&'e CpuGraphExec> {
        exec.as_any()
            .downcast_ref::<CpuGraphExec>()
            .filter(|exec| Arc::ptr_eq(&exec.stream, self.stream.shared()))
            .ok_or_else(|| failed(call, "the executable was captured on another device".into()))
    }

    /// A recording of this stream.
    fn own_graph(
        &self,
        call: &'static str,
        recording: &Arc<dyn CapturedGraph>,
    ) -> Result<Arc<CpuCapturedGraph>> {
        let own = Arc::clone(recording).into_any().downcast::<CpuCapturedGraph>().ok();
        own.filter(|own| Arc::ptr_eq(&own.stream, self.stream.shared()))
            .ok_or_else(|| failed(call, "the recording was captured on another device".into()))
    }

    /// Passes a block to the stream, which owns it.
    fn own(&self, block: Block, bytes: u64) -> Result<SharedMemory> {
        let addr = block.addr();
        self.stream.send(Command::Insert(Box::new(block)))?;
        Ok(Arc::new(Handle::new(addr, bytes, self.stream.shared().clone())))
    }
}

impl Stream for CpuBackend {
    fn launch(&mut self, launch: &Launch) -> Result<()> {
        self.stream.check()?;
        let op = launch.op.operation();
        if !op.has_cpu_code() {
            return Err(Error::NoCode { op: launch.op.name(), device: "the CPU" });
        }
        // Most kernels hold their inputs and their output at the same time.
        let collides = |out: &View| {
            let (_, end) = out.range();
            // Where an input begins decides in many launches, without a look at its dimensions.
            let overlaps = |input: &View| input.addr < end && input.overlaps(out);
            launch.inputs.iter().any(|input| overlaps(input) && !op.may_write_over(input, out))
        };
        if launch.outputs.iter().any(collides) {
            let reason = format!("{} would write what it reads", launch.op.name());
            return Err(failed("launch", reason));
        }
        if self.capture.is_some() {
            return self.submit(Node::Launch(launch.clone()));
        }
        self.stream.launch(launch)
    }

    fn supports(&mut self, op: &Op) -> Result<bool> {
        Ok(op.operation().has_cpu_code())
    }

    /// Kernels have their intermediate values on the stack.
    fn workspace(&mut self, _: &Op, _: &[View], _: &[View], _: bool) -> Result<u64> {
        Ok(0)
    }

    fn host_write(&mut self, block: HostUpload) -> Result<()> {
        self.outside_capture("host_write")?;
        check_block("host_write", &block)?;
        self.stream.send(Command::Write(Box::new(block)))
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.outside_capture("read")?;
        self.stream.read(addr, bytes as usize)
    }

    fn write_from(&mut self, copy: HostCopy) -> Result<()> {
        const CALL: &str = "write_from";
        self.outside_capture(CALL)?;
        let HostCopy { to, from, offset, bytes, zeros } = copy;
        let Ok(from) = from.into_any().downcast::<CpuHostSource>() else {
            return Err(failed(CALL, "the host memory is of another device".into()));
        };
        let from = from.begin_read(offset, bytes)?;
        self.stream.send(Command::WriteFrom { to, from: Box::new(from), zeros })
    }

    fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn HostMemory) -> Result<()> {
        const CALL: &str = "read_into";
        self.outside_capture(CALL)?;
        let bytes = bytes as usize;
        if bytes > to.len() {
            return Err(failed(
                CALL,
                format!("{bytes} bytes do not fit into {} bytes of host memory", to.len()),
            ));
        }
        let Some(to) = to.as_any_mut().downcast_mut::<CpuHostMemory>() else {
            return Err(failed(CALL, "the host memory is of another device".into()));
        };
        let to = to.begin_write()?;
        self.stream.send(Command::ReadInto { addr, bytes, to: Box::new(to) })
    }

    fn mark(&mut self) -> Result<Arc<dyn Mark>> {
        self.outside_capture("an event")?;
        let (coming, mark) = mark::mark();
        self.stream.send(Command::Mark(coming))?;
        Ok(Arc::new(mark))
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        self.stream.check()?;
        self.submit(Node::Poison { addr, bytes })
    }

    fn wants_poison(&self) -> bool {
        self.test_mode
    }

    fn synchronize(&mut self) -> Result<()> {
        self.outside_capture("synchronize")?;
        self.stream.synchronize()
    }
}

impl Arenas for CpuBackend {
    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        self.stream.check()?;
        let block = Block::reserve(NAME, at_least)?;
        let bytes = block.capacity();
        let memory = self.own(block, bytes)?;
        self.arenas += 1;
        Ok(Arena { memory, index: self.arenas - 1 })
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        self.stream.check()?;
        if bytes > arena.memory.len() {
            return Err(Error::OutOfMemory { device: NAME.into(), bytes, what: "an arena" });
        }
        self.stream.send(Command::Commit { addr: arena.memory.addr(), bytes })
    }

    fn guard_page(&self) -> u64 {
        0
    }

    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        self.commit(arena, addr + bytes - arena.memory.addr())
    }

    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        self.outside_capture("uncommit")?;
        // This is in the order of the queue: earlier commands can still use the memory.
        self.stream.send(Command::Uncommit { addr: arena.memory.addr(), bytes })?;
        Ok(bytes)
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.outside_capture("alloc")?;
        self.own(Block::new(NAME, bytes)?, bytes)
    }

    fn blocks_in_tiles(&self) -> bool {
        false
    }

    fn map_file(&mut self, file: &Arc<MappedFile>, range: Range<usize>) -> Result<Option<SharedMemory>> {
        self.outside_capture("map_file")?;
        let block = Block::file(Arc::clone(file));
        let base = block.addr();
        self.stream.send(Command::Insert(Box::new(block)))?;
        let (addr, len) = (base + range.start as u64, range.len() as u64);
        Ok(Some(Arc::new(Handle::part(base, addr, len, self.stream.shared().clone()))))
    }

    fn host_memory(&mut self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        self.outside_capture("host_memory")?;
        Ok(Box::new(CpuHostMemory::new(bytes, self.stream.faults())?))
    }

    fn host_log(&mut self, words: usize) -> Result<Arc<dyn HostLog>> {
        self.outside_capture("host_log")?;
        Ok(Arc::new(CpuHostLog::new(words)?))
    }

    fn keep(&mut self, owner: Box<dyn Any + Send + Sync>) -> SharedMemory {
        let addr = self.stream.shared().keep(owner);
        Arc::new(Handle::new(addr, 0, self.stream.shared().clone()))
    }

    /// Nothing is cached.
    fn release(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Graphs for CpuBackend {
    fn begin_capture(&mut self, _host: Option<&HostUpload>) -> Result<()> {
        self.outside_capture("begin_capture")?;
        self.capture = Some(Capture::default());
        Ok(())
    }

    fn fork(&mut self) -> Result<()> {
        let capture = self.open_capture("fork")?;
        capture.forks += 1;
        let fork = capture.forks;
        self.open_sequence("fork")?.path.push((fork, 0));
        Ok(())
    }

    fn branch(&mut self, index: usize) -> Result<()> {
        match self.open_sequence("branch")?.path.last_mut() {
            Some((_, branch)) => *branch = index as u32,
            None => return Err(failed("branch", "no fork is open".into())),
        }
        Ok(())
    }

    fn join(&mut self) -> Result<()> {
        match self.open_sequence("join")?.path.pop() {
            Some(_) => Ok(()),
            None => Err(failed("join", "no fork is open".into())),
        }
    }

    fn supports_conditionals(&self) -> Result<()> {
        Ok(())
    }

    fn begin_conditional(&mut self, node: &Conditional) -> Result<()> {
        self.open_sequence("begin_conditional")?;
        let open = OpenConditional { node: *node, bodies: Vec::with_capacity(node.bodies) };
        self.open_capture("begin_conditional")?.open.push(open);
        Ok(())
    }

    fn begin_body(&mut self, index: usize) -> Result<()> {
        let checks_branches = self.test_mode;
        let Some(open) = self.open_capture("begin_body")?.open.last_mut() else {
            return Err(failed("begin_body", "no conditional node is open".into()));
        };
        if index != open.bodies.len() || index >= open.node.bodies {
            return Err(failed("begin_body", format!("body {index} is not the next one")));
        }
        let ended = open.bodies.last().map_or(Ok(()), |body| body.check_end(checks_branches));
        ended.map_err(|reason| failed("begin_body", reason))?;
        open.bodies.push(Sequence::default());
        Ok(())
    }

    fn end_conditional(&mut self) -> Result<()> {
        const CALL: &str = "end_conditional";
        let (checks_branches, shuffle) = (self.test_mode, self.test_mode);
        let Some(open) = self.open_capture(CALL)?.open.pop() else {
            return Err(failed(CALL, "no conditional node is open".into()));
        };
        if open.bodies.len() != open.node.bodies {
            return Err(failed(CALL, format!("{} of {} bodies began", open.bodies.len(), open.node.bodies)));
        }
        let ended = open.bodies.last().map_or(Ok(()), |body| body.check_end(checks_branches));
        ended.map_err(|reason| failed(CALL, reason))?;
        let node = Node::Conditional(Arc::new(ConditionalNode::new(open, shuffle)));
        self.open_sequence(CALL)?.push(node);
        Ok(())
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>> {
        let Some((graph, _)) = self.finish("end_capture", retain)? else { return Ok(None) };
        Ok(Some(Arc::new(CpuGraphExec::new(graph, self.stream.shared().clone()))))
    }

    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>> {
        let Some((graph, paths)) = self.finish("end_capture_shared", retain)? else { return Ok(None) };
        Ok(Some(Arc::new(CpuCapturedGraph::new(graph, &paths, self.stream.shared().clone()))))
    }

    fn abort_capture(&mut self) {
        self.capture = None;
    }

    /// A capture is a list owned by this backend, which nobody else can access.
    fn capture_was_invalidated(&self) -> bool {
        false
    }

    fn instantiate(&mut self, recording: &Arc<dyn CapturedGraph>) -> Result<Arc<dyn GraphExec>> {
        self.outside_capture("instantiate")?;
        let recording = self.own_graph("instantiate", recording)?;
        Ok(Arc::new(CpuGraphExec::of(&recording)))
    }

    fn update(&mut self, exec: &Arc<dyn GraphExec>, recording: &Arc<dyn CapturedGraph>) -> Result<Update> {
        self.outside_capture("update")?;
        let recording = self.own_graph("update", recording)?;
        // Replays in the queue have their graphs with them.
        Ok(match self.own_exec("update", exec)?.update(&recording) {
            Ok(()) => Update::Done,
            Err(reason) => Update::Refused { reason: reason.into() },
        })
    }

    fn replay(&mut self, exec: &Arc<dyn GraphExec>, block: Option<HostUpload>) -> Result<()> {
        self.outside_capture("replay")?;
        let graph = self.own_exec("replay", exec)?.graph();
        let graph = graph.ok_or_else(|| failed("replay", "the recording that it ran last is gone".into()))?;
        if let Some(block) = &block {
            check_block("replay", block)?;
        }
        self.stream.send(Command::Replay(graph, block.map(Box::new)))
    }
}

impl Diagnostics for CpuBackend {
    fn name(&self) -> String {
        NAME.into()
    }

    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    fn eager_graphs(&self) -> (usize, u64) {
        (0, 0)
    }

    /// Blocks of bytes go to the stream as they are.
    fn staging_waits(&self) -> u64 {
        0
    }

    /// There are none.
    fn caches(&self) -> CacheStats {
        CacheStats::default()
    }

    fn clear_caches(&mut self) -> Result<()> {
        self.outside_capture("clear_caches")
    }

    fn clear_disk_cache(&mut self) -> Result<u64> {
        self.outside_capture("clear_disk_cache").map(|()| 0)
    }

    /// Graphs are lists of commands, from which the topology is read at any time.
    fn keep_topology(&mut self, _on: bool) {}
}

impl Backend for CpuBackend {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend")
            .field("test_mode", &self.test_mode)
            .field("capturing", &self.capture.is_some())
            .finish_non_exhaustive()
    }
}

/// Checks that every write of `block` takes bytes that the block contains.
fn check_block(call: &'static str, block: &HostUpload) -> Result<()> {
    let have = block.bytes.len();
    match block.writes.iter().find(|(_, offset, len)| offset.checked_add(*len).is_none_or(|end| end > have)) {
        None => Ok(()),
        Some((_, offset, len)) => {
            Err(failed(call, format!("{len} bytes from {offset} are asked of a block of {have}")))
        }
    }
}
