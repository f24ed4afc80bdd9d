//! A backend that fails on command, around any other backend, for tests of failures.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    Arena, Arenas, Backend, CapturedGraph, Conditional, Diagnostics, GraphExec, Graphs, HostCopy, HostLog,
    HostMemory, HostUpload, Launch, Memory, Op, PendingBytes, SharedMemory, Stream, Update, View,
    cpu::MappedFile, delegate,
};
use crate::{Error, Result, observe::inspect::NodeKind};

/// The calls that can fail.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCall {
    /// [`Arenas::reserve`]
    Reserve,
    /// [`Arenas::commit`]
    Commit,
    /// [`Arenas::alloc`] or [`Arenas::map_file`]
    Alloc,
    /// [`Stream::workspace`]
    Workspace,
    /// [`Stream::launch`], except for copies
    Launch,
    /// [`Stream::launch`] of a copy
    Copy,
    /// [`Stream::host_write`]
    HostWrite,
    /// [`Stream::read`]
    Read,
    /// [`PendingBytes::wait`]
    Wait,
    /// [`Graphs::begin_capture`]
    BeginCapture,
    /// [`Graphs::end_capture`] or [`Graphs::end_capture_shared`], before it has any effect
    EndCapture,
    /// [`Graphs::instantiate`], or the second half of [`Graphs::end_capture`]: the capture cannot be
    /// instantiated
    Instantiate,
    /// [`Graphs::update`]
    Update,
    /// [`Graphs::replay`]
    Replay,
    /// [`Stream::poison`]
    Poison,
    /// [`Stream::synchronize`]
    Synchronize,
    /// [`Graphs::fork`]
    Fork,
    /// [`Graphs::branch`]
    Branch,
    /// [`Graphs::join`]
    Join,
    /// [`Arenas::host_memory`]
    HostMemory,
    /// [`Arenas::host_log`]
    HostLog,
    /// [`Stream::write_from`]
    WriteFrom,
    /// [`Stream::read_into`]
    ReadInto,
    /// [`Graphs::begin_conditional`]
    BeginConditional,
    /// [`Graphs::begin_body`]
    BeginBody,
    /// [`Graphs::end_conditional`]
    EndConditional,
}

impl FaultCall {
    /// All calls.
    pub const ALL: [Self; 26] = [
        Self::Reserve,
        Self::Commit,
        Self::Alloc,
        Self::Workspace,
        Self::Launch,
        Self::Copy,
        Self::HostWrite,
        Self::Read,
        Self::Wait,
        Self::BeginCapture,
        Self::EndCapture,
        Self::Instantiate,
        Self::Update,
        Self::Replay,
        Self::Poison,
        Self::Synchronize,
        Self::Fork,
        Self::Branch,
        Self::Join,
        Self::HostMemory,
        Self::HostLog,
        Self::WriteFrom,
        Self::ReadInto,
        Self::BeginConditional,
        Self::BeginBody,
        Self::EndConditional,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Commit => "commit",
            Self::Alloc => "alloc",
            Self::Workspace => "workspace",
            Self::Launch => "launch",
            Self::Copy => "copy",
            Self::HostWrite => "host_write",
            Self::Read => "read",
            Self::Wait => "wait",
            Self::BeginCapture => "begin_capture",
            Self::EndCapture => "end_capture",
            Self::Instantiate => "instantiate",
            Self::Update => "update",
            Self::Replay => "replay",
            Self::Poison => "poison",
            Self::Synchronize => "synchronize",
            Self::Fork => "fork",
            Self::Branch => "branch",
            Self::Join => "join",
            Self::HostMemory => "host_memory",
            Self::HostLog => "host_log",
            Self::WriteFrom => "write_from",
            Self::ReadInto => "read_into",
            Self::BeginConditional => "begin_conditional",
            Self::BeginBody => "begin_body",
            Self::EndConditional => "end_conditional",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    call: Option<FaultCall>,
    left: u64,
    lost: bool,
    /// The failure is a lack of memory.
    full: bool,
}

/// The plan of failures, shared by the test and the backend.
#[derive(Debug, Default)]
pub struct FaultPlan {
    armed: Mutex<Option<Armed>>,
    counts: [AtomicU64; FaultCall::ALL.len()],
    lost: AtomicBool,
    refuses_updates: AtomicBool,
    lacks_conditionals: AtomicBool,
    invalidations: Mutex<VecDeque<Option<u64>>>,
    memory: Mutex<Vec<Weak<dyn Memory>>>,
    executables: Mutex<Vec<Weak<dyn GraphExec>>>,
}

impl FaultPlan {
    /// Makes the `nth` call from now on (from 0) of that kind, or of any kind, fail. With `lost`, the device
    /// is lost: that call and everything after it fail with [`Error::ContextLost`].
    pub fn arm(&self, call: Option<FaultCall>, nth: u64, lost: bool) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Armed { call, left: nth, lost, full: false });
    }

    /// Makes the `nth` call from now on (from 0) of that kind fail with [`Error::OutOfMemory`].
    pub fn run_out_of_memory(&self, call: FaultCall, nth: u64) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Armed { call: Some(call), left: nth, lost: false, full: true });
    }

    /// Ends all planned failures. Returns whether the failure had not happened yet.
    pub fn disarm(&self) -> bool {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Makes the device refuse every update from now on, or accept them again, which is not a failure: see
    /// [`Update::Refused`].
    pub fn refuse_updates(&self, on: bool) {
        self.refuses_updates.store(on, Ordering::Relaxed);
    }

    /// Makes the device lack conditional nodes from now on, like a driver that is too old, or have them again.
    pub fn lack_conditionals(&self, on: bool) {
        self.lacks_conditionals.store(on, Ordering::Relaxed);
    }

    /// Invalidates the next captures, as another thread of the process may do: each after the given number of
    /// commands, or, with `None`, before it has begun. Subsequent calls fail until the capture is aborted or
    /// ended.
    pub fn invalidate_captures(&self, after: impl IntoIterator<Item = Option<u64>>) {
        self.invalidations.lock().unwrap_or_else(PoisonError::into_inner).extend(after);
    }

    /// Returns how often a call was made.
    pub fn count(&self, call: FaultCall) -> u64 {
        self.counts[call as usize].load(Ordering::Relaxed)
    }

    /// Returns how many of the allocations made through the backend still have a handle, and their bytes.
    /// Arenas are not included.
    pub fn live_memory(&self) -> (usize, u64) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|weak| weak.strong_count() > 0);
        let bytes = memory.iter().filter_map(Weak::upgrade).map(|m| m.len()).sum();
        (memory.len(), bytes)
    }

    /// Returns how many of the executables made through the backend still have a handle.
    pub fn live_executables(&self) -> usize {
        let mut executables = self.executables.lock().unwrap_or_else(PoisonError::into_inner);
        executables.retain(|weak| weak.strong_count() > 0);
        executables.len()
    }

    fn next_invalidation(&self) -> Option<Option<u64>> {
        self.invalidations.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn note_memory(&self, memory: &SharedMemory) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(memory));
    }

    fn note_exec(&self, exec: &Arc<dyn GraphExec>) {
        self.executables.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(exec));
    }

    fn check_lost(&self) -> Result<()> {
        match self.lost.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::ContextLost { device: "faulty".into(), reason: "the test said so".into() }),
        }
    }

    fn pass(&self, call: FaultCall) -> Result<()> {
        self.counts[call as usize].fetch_add(1, Ordering::Relaxed);
        self.check_lost()?;
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fault) = armed.as_mut().filter(|a| a.call.is_none_or(|c| c == call)) else { return Ok(()) };
        if fault.left > 0 {
            fault.left -= 1;
            return Ok(());
        }
        let (is_lost, is_full) = (fault.lost, fault.full);
        *armed = None;
        if is_lost {
            self.lost.store(true, Ordering::Relaxed);
            return self.check_lost();
        }
        if is_full {
            return Err(Error::OutOfMemory { device: "faulty".into(), bytes: 0, what: call.name() });
        }
        Err(Error::Device { device: "faulty".into(), call: call.name(), reason: "the test said so".into() })
    }
}

/// Delegates calls to another backend, unless its plan makes them fail.
#[derive(Debug)]
pub struct FaultyBackend {
    inner: Box<dyn Backend>,
    plan: Arc<FaultPlan>,
    /// The number of commands that the current capture accepts before it is invalidated, if it will be.
    takes: Option<u64>,
    /// Set if the current capture was invalidated, or the last one if there is none.
    invalidated: bool,
}

impl FaultyBackend {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn Backend>, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan, takes: None, invalidated: false }
    }

    /// Adds a command to the current capture, if there is one.
    fn put_in(&mut self) -> Result<()> {
        match &mut self.takes {
            Some(0) => self.invalidate(),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn invalidate(&mut self) -> Result<()> {
        self.invalidated = true;
        Err(Error::Device {
            device: "faulty".into(),
            call: "capture",
            reason: "another thread invalidated it".into(),
        })
    }

    fn end(&mut self) -> Result<()> {
        let fault = match self.takes.take() {
            Some(0) => self.invalidate(),
            _ => self.plan.pass(FaultCall::EndCapture),
        };
        if fault.is_err() {
            self.inner.abort_capture();
        }
        fault
    }
}

impl Stream for FaultyBackend {
    delegate!(inner: supports, mark, wants_poison);

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        self.plan.pass(if launch.op.operation().node_kind() == NodeKind::Copy {
            FaultCall::Copy
        } else {
            FaultCall::Launch
        })?;
        self.put_in()?;
        self.inner.launch(launch)
    }

    fn workspace(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64> {
        self.plan.pass(FaultCall::Workspace)?;
        self.inner.workspace(op, inputs, outputs, measure)
    }

    fn host_write(&mut self, block: HostUpload) -> Result<()> {
        self.plan.pass(FaultCall::HostWrite)?;
        self.inner.host_write(block)
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.plan.pass(FaultCall::Read)?;
        let inner = self.inner.read(addr, bytes)?;
        Ok(Box::new(FaultyPending { inner, plan: Arc::clone(&self.plan) }))
    }

    fn write_from(&mut self, copy: HostCopy) -> Result<()> {
        self.plan.pass(FaultCall::WriteFrom)?;
        self.inner.write_from(copy)
    }

    fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn HostMemory) -> Result<()> {
        self.plan.pass(FaultCall::ReadInto)?;
        self.inner.read_into(addr, bytes, to)
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        self.plan.pass(FaultCall::Poison)?;
        self.put_in()?;
        self.inner.poison(addr, bytes)
    }

    fn synchronize(&mut self) -> Result<()> {
        self.plan.pass(FaultCall::Synchronize)?;
        self.inner.synchronize()
    }
}

impl Arenas for FaultyBackend {
    delegate!(inner: guard_page, blocks_in_tiles, keep, release);

    fn host_memory(&mut self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        self.plan.pass(FaultCall::HostMemory)?;
        self.inner.host_memory(bytes)
    }

    fn host_log(&mut self, words: usize) -> Result<Arc<dyn HostLog>> {
        self.plan.pass(FaultCall::HostLog)?;
        self.inner.host_log(words)
    }

    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        self.plan.pass(FaultCall::Reserve)?;
        self.inner.reserve(at_least)
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        self.plan.pass(FaultCall::Commit)?;
        self.inner.commit(arena, bytes)
    }

    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        self.plan.pass(FaultCall::Commit)?;
        self.inner.commit_block(arena, addr, bytes)
    }

    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        self.plan.check_lost()?;
        self.inner.uncommit(arena, bytes)
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.plan.pass(FaultCall::Alloc)?;
        let memory = self.inner.alloc(bytes)?;
        self.plan.note_memory(&memory);
        Ok(memory)
    }

    fn map_file(&mut self, file: &Arc<MappedFile>, range: Range<usize>) -> Result<Option<SharedMemory>> {
        self.plan.pass(FaultCall::Alloc)?;
        let memory = self.inner.map_file(file, range)?;
        if let Some(memory) = &memory {
            self.plan.note_memory(memory);
        }
        Ok(memory)
    }
}

impl Graphs for FaultyBackend {
    fn begin_capture(&mut self, host: Option<&HostUpload>) -> Result<()> {
        self.invalidated = false;
        self.plan.pass(FaultCall::BeginCapture)?;
        match self.plan.next_invalidation() {
            Some(None) => return self.invalidate(),
            Some(after) => self.takes = after,
            None => {}
        }
        self.inner.begin_capture(host).inspect_err(|_| self.takes = None)
    }

    fn fork(&mut self) -> Result<()> {
        self.plan.pass(FaultCall::Fork)?;
        self.put_in()?;
        self.inner.fork()
    }

    fn branch(&mut self, index: usize) -> Result<()> {
        self.plan.pass(FaultCall::Branch)?;
        self.put_in()?;
        self.inner.branch(index)
    }

    fn join(&mut self) -> Result<()> {
        // The fork is closed in any case.
        let joined = self.inner.join();
        self.plan.pass(FaultCall::Join).and(joined).and_then(|()| self.put_in())
    }

    fn supports_conditionals(&self) -> Result<()> {
        match self.plan.lacks_conditionals.load(Ordering::Relaxed) {
            false => self.inner.supports_conditionals(),
            true => Err(Error::NoConditionalNodes {
                device: "faulty".into(),
                needs: "12.4",
                found: "12.2".into(),
            }),
        }
    }

    fn begin_conditional(&mut self, node: &Conditional) -> Result<()> {
        self.supports_conditionals()?;
        self.plan.pass(FaultCall::BeginConditional)?;
        self.put_in()?;
        self.inner.begin_conditional(node)
    }

    fn begin_body(&mut self, index: usize) -> Result<()> {
        self.plan.pass(FaultCall::BeginBody)?;
        self.put_in()?;
        self.inner.begin_body(index)
    }

    fn end_conditional(&mut self) -> Result<()> {
        self.plan.pass(FaultCall::EndConditional)?;
        self.put_in()?;
        self.inner.end_conditional()
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn GraphExec>>> {
        self.end()?;
        let exec = self.inner.end_capture(retain)?;
        if let Some(exec) = &exec {
            self.plan.pass(FaultCall::Instantiate)?;
            self.plan.note_exec(exec);
        }
        Ok(exec)
    }

    fn end_capture_shared(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn CapturedGraph>>> {
        self.end()?;
        self.inner.end_capture_shared(retain)
    }

    fn abort_capture(&mut self) {
        self.takes = None;
        self.inner.abort_capture();
    }

    fn capture_was_invalidated(&self) -> bool {
        self.invalidated || self.inner.capture_was_invalidated()
    }

    fn instantiate(&mut self, recording: &Arc<dyn CapturedGraph>) -> Result<Arc<dyn GraphExec>> {
        self.plan.pass(FaultCall::Instantiate)?;
        let exec = self.inner.instantiate(recording)?;
        self.plan.note_exec(&exec);
        Ok(exec)
    }

    fn update(&mut self, exec: &Arc<dyn GraphExec>, recording: &Arc<dyn CapturedGraph>) -> Result<Update> {
        self.plan.pass(FaultCall::Update)?;
        if self.plan.refuses_updates.load(Ordering::Relaxed) {
            return Ok(Update::Refused { reason: "the test said so".into() });
        }
        self.inner.update(exec, recording)
    }

    fn replay(&mut self, exec: &Arc<dyn GraphExec>, block: Option<HostUpload>) -> Result<()> {
        self.plan.pass(FaultCall::Replay)?;
        self.inner.replay(exec, block)
    }
}

impl Diagnostics for FaultyBackend {
    delegate!(
        inner: name, device_memory, eager_graphs, staging_waits, caches, clear_caches, clear_disk_cache, keep_topology
    );
}

impl Backend for FaultyBackend {
    delegate!(inner: as_any);
}

/// A read that may fail to return its bytes.
struct FaultyPending {
    inner: Box<dyn PendingBytes>,
    plan: Arc<FaultPlan>,
}

impl PendingBytes for FaultyPending {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        self.plan.pass(FaultCall::Wait)?;
        self.inner.wait()
    }

    fn wait_without_faults(self: Box<Self>) -> Result<Vec<u8>> {
        self.plan.pass(FaultCall::Wait)?;
        self.inner.wait_without_faults()
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }
}

#[cfg(test)]
mod tests;
