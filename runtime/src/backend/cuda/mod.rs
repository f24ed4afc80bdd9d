//! NVIDIA GPUs: a stream of our own, CUDA graphs, and kernels compiled on the machine.
//!
//! `driver` holds the driver's objects behind owners; `compile` turns sources into code on the
//! device; `kernels` launches the operations; `shared` frees what handles let go of. Nothing here
//! waits for the whole device or context: a capture of another runtime, or of another library, is
//! not disturbed. Nor does anything leave its context current on the calling thread: every call into the driver is
//! made under a `Bound`, which costs a question where the context is current already.

use std::{any::Any, fmt, sync::Arc};

use rustc_hash::FxHashMap;

mod arena;
mod blas;
mod compile;
mod driver;
mod eager;
mod executable;
mod fault;
mod fork;
mod hot;
mod interop;
mod intruder;
mod kernels;
mod mark;
mod product;
mod props;
mod read;
mod recording;
mod retired;
mod retry;
mod ring;
mod search;
mod shared;
mod staging;
mod trust;

pub use compile::compile_all;
pub use interop::CudaRef;
pub(crate) use props::Props;

use self::{
    arena::ArenaMemory,
    blas::{Blas, Pin},
    driver::{Bound, Context, Function, Graph, Stream},
    eager::Singles,
    executable::CudaExecutable,
    fault::Faults,
    fork::Fork,
    kernels::{FaultSink, Grid, Kernel, PutClass, Submit},
    mark::CudaMark,
    read::CudaRead,
    recording::CudaRecording,
    retry::Retry,
    shared::{Owned, Shared},
};
use super::{
    Arena, Backend, Executable, HostBlock, Launch, Mark, Op, PendingBytes, Recording, SharedMemory, Update,
    View, refused_in_capture,
};
use crate::{Error, Result, observe::inspect::Topology};

/// How a GPU works: `CudaOptions::default().test_mode(true)`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CudaOptions {
    /// Fills fresh and freed memory with NaNs, so that a use of it shows.
    pub test_mode: bool,
    /// Puts unmapped pages between the blocks of the arenas, each block ending where one begins, so that a
    /// kernel that runs past a block faults (and compute-sanitizer names it). Takes at least 2 MiB a block. Pages
    /// that were used once stay mapped: a guard is sure only between blocks that were never elsewhere.
    pub guard_gaps: bool,
}

impl CudaOptions {
    /// Turns the [test mode](Self::test_mode) on or off.
    pub fn test_mode(mut self, on: bool) -> Self {
        self.test_mode = on;
        self
    }

    /// Turns the [guard gaps](Self::guard_gaps) on or off.
    pub fn guard_gaps(mut self, on: bool) -> Self {
        self.guard_gaps = on;
        self
    }
}

/// How many GPUs the driver shows.
///
/// # Errors
/// [`Error::NoDevice`] without a driver, or with one that is too old.
pub fn device_count() -> Result<usize> {
    driver::device_count()
}

/// Whether GPU number `ordinal` can be used.
///
/// # Errors
/// [`Error::NoDevice`] with what is missing.
pub fn check(ordinal: usize) -> Result<()> {
    Context::open(ordinal).map(drop)
}

/// The pattern of poisoned memory: NaN in every float type, and no plausible index.
const POISON: u8 = 0xFF;

/// What is known of the capture under way.
#[derive(Debug)]
struct Capture {
    head: Option<PutClass>,
    spoilt: bool,
    /// How many nodes it has that are ours; `None` where the driver cannot tell.
    nodes: Option<usize>,
    /// Forks that are open, the innermost last; `None` where the driver cannot fork.
    forks: Vec<Option<Fork>>,
    /// The plans of its products, which the recording keeps.
    pins: Vec<Pin>,
}

/// A GPU as a [`Backend`].
pub struct CudaBackend {
    shared: Arc<Shared>,
    faults: Arc<Faults>,
    options: CudaOptions,
    arenas: Vec<Arc<ArenaMemory>>,
    functions: FxHashMap<Kernel, (Function, u32)>,
    capture: Option<Capture>,
    /// The last capture was spoilt by another thread.
    spoilt: bool,
    /// Whether kernels may have more than 4 KB of parameters; found out when one is first wanted.
    has_large_params: bool,
    large_params_retry: Retry,
    /// Whether captures keep what the driver says of their graph.
    keeps_topology: bool,
    /// Whether the last thing on the stream was a kernel, and no graph: only beside a kernel can the next one
    /// be brought up early.
    after_kernel: bool,
    /// Memory for a kernel's parameter, used again.
    params: Vec<u8>,
    /// Graphs that eager kernels are launched as.
    singles: Singles,
    /// The library for matrix products; opened by the first product. `None` inside: it is missing.
    blas: Option<Option<Blas>>,
}

impl CudaBackend {
    /// GPU number `ordinal`, with a stream of its own.
    ///
    /// # Errors
    /// [`Error::NoDevice`] without driver or GPU; [`Error::OutOfMemory`].
    pub fn new(ordinal: usize, options: CudaOptions) -> Result<Self> {
        let context = Context::open(ordinal)?;
        let stream = Stream::new(&context)?;
        Self::with_stream(stream, options)
    }

    /// On a stream of the user's.
    ///
    /// # Errors
    /// [`Error::Config`] for a stream that cannot be captured; as [`new`](Self::new).
    pub fn on(stream: Arc<cudarc::driver::CudaStream>, options: CudaOptions) -> Result<Self> {
        let context = Context::open(stream.context().ordinal())?;
        Self::with_stream(Stream::borrow(&context, stream)?, options)
    }

    fn with_stream(stream: Stream, options: CudaOptions) -> Result<Self> {
        let _bound = stream.context().bind()?;
        let shared = Arc::new(Shared::new(stream)?);
        let faults = Arc::new(Faults::new(&shared)?);
        Ok(Self {
            shared,
            faults,
            singles: Singles::new(&options),
            options,
            arenas: Vec::new(),
            functions: FxHashMap::default(),
            capture: None,
            spoilt: false,
            has_large_params: false,
            large_params_retry: Retry::default(),
            keeps_topology: false,
            after_kernel: false,
            params: Vec::new(),
            blas: None,
        })
    }

    /// Refuses `call` in a capture; the context is current while the guard lives.
    fn outside_capture(&self, call: &'static str) -> Result<Bound> {
        match self.capture {
            Some(_) => Err(refused_in_capture(call)),
            None => self.shared.context.bind(),
        }
    }

    fn open_capture(&mut self, call: &'static str) -> Result<&mut Capture> {
        let device = self.shared.context.name();
        self.capture.as_mut().ok_or_else(|| Error::Device {
            device: device.to_owned(),
            call,
            why: "no capture is under way".into(),
        })
    }

    /// Waits, and gives back what nothing needs: for another try after the device was full.
    fn reclaim(&mut self) -> Result<()> {
        self.release();
        self.shared.reclaim()
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    fn failed(&self, call: &'static str, why: String) -> Error {
        Error::Device { device: self.shared.context.name().to_owned(), call, why }
    }

    /// Ends the capture under way.
    fn ended(
        &mut self,
        call: &'static str,
        retain: Vec<SharedMemory>,
        lends: bool,
    ) -> Result<Option<CudaRecording>> {
        let _bound = self.shared.context.bind()?;
        let intruders = self.check_intruders();
        let Some(mut capture) = self.capture.take() else {
            return Err(self.failed(call, "no capture is under way".into()));
        };
        capture.spoilt = self.shared.stream.capture_is_spoilt();
        self.spoilt = capture.spoilt;
        let pins = std::mem::take(&mut capture.pins);
        let ended = self.finish_capture(&capture, retain, pins, lends);
        intruders.and(ended)
    }

    /// A kernel, compiled and loaded if it is new. Loading is outside any capture's order.
    fn function(&mut self, kernel: Kernel, shared: u32) -> Result<Function> {
        if let Some(&(function, allowed)) = self.functions.get(&kernel)
            && shared <= allowed
        {
            return Ok(function);
        }
        let function =
            self.shared.context.unordered(|| compile::function(&self.shared.context, kernel, shared))?;
        let allowed = shared.max(48 << 10);
        self.functions.insert(kernel, (function, allowed));
        Ok(function)
    }

    /// Whether the 32 KB kernel can be had: finding out compiles it. That it could not be had once, for want of memory
    /// say, is no reason never to ask again.
    fn large_params(&mut self, block: &HostBlock) -> bool {
        if PutClass::of(block, false).is_some() || !self.shared.context.props().large_params {
            // Not needed, or not to be had with this driver.
            return self.has_large_params;
        }
        // Too large even so: nothing can be learnt.
        let Some(class) = PutClass::of(block, true) else { return false };
        if !self.has_large_params && self.large_params_retry.is_due() {
            match self.function(class.kernel(), 0) {
                Ok(_) => self.has_large_params = true,
                Err(error) => {
                    if self.large_params_retry.failed() {
                        tracing::info!(%error, "host inputs above 4 KB go through pinned memory for now");
                    }
                }
            }
        }
        self.has_large_params
    }

    /// Puts `block` on the stream as a kernel of its own, or through pinned memory.
    fn put(&mut self, block: &HostBlock) -> Result<()> {
        let large = self.large_params(block);
        match PutClass::of(block, large) {
            Some(class) => self.put_kernel(class, block),
            None => {
                staging::write(&self.shared, block)?;
                let copies = HostBlock { copies: block.copies.clone(), ..HostBlock::default() };
                // Each fits many times; more than that goes in several launches.
                for part in copies.copies.chunks(128) {
                    let part = HostBlock { copies: part.to_vec(), ..HostBlock::default() };
                    if let Some(class) = PutClass::of(&part, false) {
                        self.put_kernel(class, &part)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn put_kernel(&mut self, class: PutClass, block: &HostBlock) -> Result<()> {
        let function = self.function(class.kernel(), 0)?;
        let mut params = std::mem::take(&mut self.params);
        class.pack(block, &mut params);
        let launched = self.watched(true, |backend| {
            let plain = backend.capture.is_none();
            let grid = class.grid(block, backend.shared.context.props());
            backend.shared.stream.launch(function, grid, &params, plain)
        });
        self.params = params;
        launched
    }
}

impl CudaBackend {
    /// What the driver says of a captured graph; our kernels by their own names.
    fn topology(&self, graph: &Graph) -> Result<Topology> {
        let names: FxHashMap<Function, &str> =
            self.functions.iter().map(|(kernel, &(function, _))| (function, kernel.name)).collect();
        graph.topology(|function| names.get(&function).copied())
    }
}

impl Submit for CudaBackend {
    fn props(&self) -> &Props {
        self.shared.context.props()
    }

    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()> {
        let function = self.function(kernel, grid.shared)?;
        if self.capture.is_none() {
            return self.launch_eagerly(function, grid, params);
        }
        self.watched(true, |backend| backend.shared.stream.launch(function, grid, params, false))
    }

    fn faults(&self) -> FaultSink {
        self.faults.sink()
    }

    fn fault_op(&mut self, name: &'static str) -> u32 {
        self.faults.number(name)
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> String {
        self.shared.context.name().to_owned()
    }

    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        let _bound = self.outside_capture("reserve")?;
        let memory = Arc::new(ArenaMemory::reserve(&self.shared, at_least)?);
        self.arenas.push(Arc::clone(&memory));
        Ok(Arena { memory, index: self.arenas.len() - 1 })
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        let Some(memory) = self.arenas.get(arena.index).cloned() else {
            return Err(self.failed("commit", "the arena is of another device".into()));
        };
        let (before, now) = match memory.commit(bytes) {
            // Not in a capture: nothing may be waited for.
            Err(Error::OutOfMemory { .. }) if self.capture.is_none() => {
                self.reclaim()?;
                memory.commit(bytes)?
            }
            other => other?,
        };
        if self.options.test_mode && now > before && self.capture.is_none() {
            self.shared.stream.fill(arena.memory.addr() + before, POISON, now - before)?;
        }
        Ok(())
    }

    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        let _bound = self.outside_capture("uncommit")?;
        let Some(memory) = self.arenas.get(arena.index) else {
            return Err(self.failed("uncommit", "the arena is of another device".into()));
        };
        // Memory is unmapped at once: nothing of this stream, the only one that uses it, may run on it.
        self.shared.stream.synchronize()?;
        memory.uncommit(bytes)
    }

    fn eager_graphs(&self) -> (usize, u64) {
        self.singles.usage()
    }

    fn staging_waits(&self) -> u64 {
        self.shared.staging_waits()
    }

    fn mark(&mut self) -> Result<Arc<dyn Mark>> {
        let _bound = self.outside_capture("an event")?;
        // A kernel is not brought up across it: its time would be that of two.
        self.after_kernel = false;
        Ok(Arc::new(CudaMark::new(&self.shared)?))
    }

    fn release(&mut self) {
        self.singles.release(&self.shared);
    }

    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        self.shared.context.memory().map(Some)
    }

    fn guard_page(&self) -> u64 {
        // Every arena's pages are of one size.
        self.arenas.first().filter(|_| self.options.guard_gaps).map_or(0, |arena| arena.page())
    }

    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        let Some(memory) = self.arenas.get(arena.index) else {
            return Err(self.failed("commit_block", "the arena is of another device".into()));
        };
        for page in memory.commit_block(addr, bytes)? {
            if self.options.test_mode && self.capture.is_none() {
                self.shared.stream.fill(page, POISON, memory.page())?;
            }
        }
        Ok(())
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        let _bound = self.outside_capture("alloc")?;
        self.shared.drain()?;
        let what = "parameters or state";
        let addr = match self.shared.pool.alloc(&self.shared.stream, bytes.max(1), what) {
            Err(Error::OutOfMemory { .. }) => {
                self.reclaim()?;
                self.shared.pool.alloc(&self.shared.stream, bytes.max(1), what)?
            }
            other => other?,
        };
        let owned = Arc::new(Owned { addr, bytes, shared: Arc::clone(&self.shared) });
        self.shared.stream.fill(addr, 0, bytes.max(1))?;
        Ok(owned)
    }

    fn scratch(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64> {
        match (op, outputs) {
            (Op::MatMul, [output]) => {
                let _bound = self.shared.context.bind()?;
                self.product_scratch(inputs, output, measure)
            }
            _ => Ok(kernels::scratch_bytes(self.shared.context.props(), op, inputs, outputs)),
        }
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        if self.capture.is_none() {
            self.faults.reset()?;
        }
        match launch.op {
            Op::MatMul => self.launch_product(launch),
            _ => kernels::launch(self, launch, launch.scratch),
        }
    }

    fn host_write(&mut self, block: HostBlock) -> Result<()> {
        let _bound = self.outside_capture("host_write")?;
        self.shared.drain()?;
        self.put(&block)
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        let _bound = self.outside_capture("read")?;
        self.shared.drain()?;
        Ok(Box::new(CudaRead::start(&self.shared, &self.faults, addr, bytes)?))
    }

    fn begin_capture(&mut self, host: Option<&HostBlock>) -> Result<()> {
        self.spoilt = false;
        let _bound = self.outside_capture("begin_capture")?;
        self.shared.drain()?;
        let mut head = None;
        if let Some(block) = host {
            let large = self.large_params(block);
            head = PutClass::of(block, large);
            if let Some(class) = head {
                // Compiled and loaded before the capture starts.
                self.function(class.kernel(), 0)?;
            }
        }
        self.shared.stream.begin_capture()?;
        // None is ours yet, whatever another thread has put there.
        let nodes = self.shared.stream.captured_nodes().map(|_| 0);
        self.capture = Some(Capture { head, spoilt: false, nodes, forks: Vec::new(), pins: Vec::new() });
        if let (Some(class), Some(block)) = (head, host)
            && let Err(error) = self.put_kernel(class, block)
        {
            self.abort_capture();
            return Err(error);
        }
        Ok(())
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Executable>>> {
        let _bound = self.shared.context.bind()?;
        let Some(recording) = self.ended("end_capture", retain, false)? else { return Ok(None) };
        let Some(graph) = recording.graph().cloned() else { return Ok(None) };
        let (exec, bytes) = self.make_executable(&graph)?;
        drop(graph);
        Ok(Some(Arc::new(CudaExecutable::owning(recording, exec, bytes))))
    }

    fn end_recording(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Recording>>> {
        Ok(match self.ended("end_recording", retain, true)? {
            Some(recording) => Some(Arc::new(recording)),
            None => None,
        })
    }

    fn instantiate(&mut self, recording: &Arc<dyn Recording>) -> Result<Arc<dyn Executable>> {
        let _bound = self.outside_capture("instantiate")?;
        let recording = self.own_recording("instantiate", recording)?;
        let graph = recording.graph().ok_or_else(|| self.failed("instantiate", "it has no graph".into()))?;
        let (exec, bytes) = self.make_executable(graph)?;
        Ok(Arc::new(CudaExecutable::lent(&recording, exec, bytes)))
    }

    fn update(&mut self, exec: &Arc<dyn Executable>, recording: &Arc<dyn Recording>) -> Result<Update> {
        let _bound = self.outside_capture("update")?;
        let recording = self.own_recording("update", recording)?;
        self.own_executable("update", exec)?.update(&recording)
    }

    fn abort_capture(&mut self) {
        if self.capture.take().is_some() {
            let _bound = self.shared.context.bind();
            self.spoilt = self.shared.stream.capture_is_spoilt();
            // Its error is the capture's own failure, which is known already.
            drop(self.shared.stream.end_capture());
        }
    }

    fn keep_topology(&mut self, on: bool) {
        self.keeps_topology = on;
    }

    fn fork(&mut self) -> Result<()> {
        let stream = &self.shared.stream;
        let fork = stream.has_waits().then(|| Fork::open(stream)).transpose()?;
        self.open_capture("fork")?.forks.push(fork);
        Ok(())
    }

    fn branch(&mut self, index: usize) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        match self.open_capture("branch")?.forks.last_mut() {
            Some(Some(fork)) => fork.branch(index, &shared.stream),
            Some(None) => Ok(()),
            None => Err(self.failed("branch", "no fork is open".into())),
        }
    }

    fn join(&mut self) -> Result<()> {
        match self.open_capture("join")?.forks.pop() {
            Some(Some(fork)) => fork.join(&self.shared.stream),
            Some(None) => Ok(()),
            None => Err(self.failed("join", "no fork is open".into())),
        }
    }

    fn capture_was_spoilt(&self) -> bool {
        self.spoilt || self.capture.is_some() && self.shared.stream.capture_is_spoilt()
    }

    fn replay(&mut self, exec: &Arc<dyn Executable>, block: Option<HostBlock>) -> Result<()> {
        let _bound = self.outside_capture("replay")?;
        self.faults.reset()?;
        self.after_kernel = false;
        self.singles.end();
        let exec = self.own_executable("replay", exec)?;
        let large = self.has_large_params;
        let mut params = std::mem::take(&mut self.params);
        let launched = match block {
            Some(block) if exec.takes(&block, large) => exec.launch(Some(&block), &mut params),
            Some(block) => {
                self.params = params;
                self.put(&block)?;
                params = std::mem::take(&mut self.params);
                exec.launch(None, &mut params)
            }
            None => exec.launch(None, &mut params),
        };
        self.params = params;
        launched
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        self.watched(false, |backend| backend.shared.stream.fill(addr, POISON, bytes))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn wants_poison(&self) -> bool {
        self.options.test_mode
    }

    fn synchronize(&mut self) -> Result<()> {
        let _bound = self.outside_capture("synchronize")?;
        self.shared.stream.synchronize()?;
        self.shared.drain()?;
        self.faults.check()
    }
}

impl Drop for CudaBackend {
    fn drop(&mut self) {
        self.abort_capture();
        self.release();
        self.shared.close();
    }
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend")
            .field("device", &self.shared.context.name())
            .field("test_mode", &self.options.test_mode)
            .field("capturing", &self.capture.is_some())
            .finish_non_exhaustive()
    }
}
