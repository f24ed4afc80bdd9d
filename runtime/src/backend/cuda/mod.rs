//! NVIDIA GPUs: a stream of our own, CUDA graphs, and kernels compiled on the machine.
//!
//! `driver` wraps the driver's objects in owners; `compile` turns sources into device code; `kernels`
//! launches the operations; `shared` frees what handles release. Nothing here waits for the whole device or
//! context, so captures of another runtime or library are not disturbed. Neither does anything leave its
//! context current on the calling thread: every call into the driver is made under a `Bound`, which costs one
//! query if the context is already current, and calls of graphs on threads without a context under a `BoundForCall`.

use std::{any::Any, collections::hash_map::Entry, fmt, panic::Location, sync::Arc, time::Duration};

use cudarc::driver::{CudaContext, CudaStream};
use rustc_hash::FxHashMap;

mod arena;
mod arenas;
mod backoff;
mod blas;
mod body_overlap;
mod captured_graph;
mod compile;
mod conditional;
mod convolution;
pub(crate) mod custom;
mod deferred_free;
mod device_properties;
mod disk;
mod dnn;
mod driver;
mod eager;
mod fault;
mod foreign_launch;
mod fork;
mod functions;
mod graph_exec;
mod graphs;
mod host_log;
mod host_memory;
mod interop;
pub(crate) mod kernels;
mod mark;
mod patience;
mod product;
mod read;
mod ring;
mod search;
mod shared;
mod staging;
mod stream;
mod trust;
mod usage_gated_cache;

pub(crate) use blas::problem;
pub(crate) use compile::compile_source;
pub use compile::{Check, compile_file};
pub(crate) use device_properties::DeviceProperties;
pub use disk::CacheFolder;
pub(crate) use driver::BoundForCall;
pub use interop::CudaRef;

use self::{
    arena::ArenaMemory,
    backoff::Backoff,
    blas::{Blas, Pin},
    captured_graph::CudaCapturedGraph,
    conditional::{BodiesOf, ConditionalSupport, OpenConditional},
    custom::CudaGrid,
    disk::Disk,
    dnn::Dnn,
    driver::{Bound, Context, Function, Graph, SHARED_WITHOUT_REQUEST, Stream},
    eager::SingleKernelGraphs,
    fault::{Faults, Reporter},
    fork::Fork,
    kernels::{Convolution, ConvolutionAddresses, FaultSink, Grid, Kernel, Product, Submit, UploadSizeClass},
    shared::Shared,
};
use super::{Backend, Diagnostics, Graphs, HostUpload, SharedMemory, refused_in_capture};
use crate::{CacheStats, Error, Result, observe::inspect::Topology};

/// Options of a GPU: `CudaOptions::default().test_mode(true)`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CudaOptions {
    /// Fills fresh and freed memory with NaNs, so that a use of it shows.
    pub test_mode: bool,
    /// Leaves unmapped pages between the blocks of the arenas, with each block ending at the beginning of
    /// such a page, so that a kernel that accesses memory beyond a block faults (and compute-sanitizer names
    /// it). Takes at least 2 MiB per block. Pages that have been used remain mapped, so a guard is certain
    /// only between blocks that were never elsewhere.
    pub guard_gaps: bool,
    /// The folder in which compiled kernels and measured algorithms are kept for later processes. By default the user's.
    /// Modules are shared by the runtimes of a process: a kernel that one of them has compiled is not stored again.
    pub cache_folder: CacheFolder,
    /// The bytes that the files of the folder may have together; `None` sets no limit. When there are more, those that were not
    /// used for longest are removed. By default 1 GiB. Checked when something is stored.
    pub cache_limit: Option<u64>,
    /// The number of products of matrices whose algorithm is remembered, besides those of recordings; of more, half are
    /// forgotten, and looked up or measured again when they are needed. At least 1; by default 1024.
    pub product_plans: usize,
    /// The number of convolutions whose algorithm is remembered; of more, all are forgotten, and looked up again, with the
    /// same result. At least 1; by default 1024.
    pub convolution_plans: usize,
    /// The time for which the host spins when it waits for the device, in reads and other waits, before it sleeps between two looks. A
    /// wait that ends while it spins ends at once; a later one up to 250 us late, but never by more than a 64th of the wait
    /// (and what the system adds to a sleep, often 50 us). [`Duration::MAX`] always spins, [`Duration::ZERO`] never. By
    /// default 2 ms, so that reads of short calls are not delayed, and the host sleeps through loops on the device.
    pub spin: Duration,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            test_mode: false,
            guard_gaps: false,
            cache_folder: CacheFolder::User,
            cache_limit: Some(1 << 30),
            product_plans: 1024,
            convolution_plans: 1024,
            spin: Duration::from_millis(2),
        }
    }
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

    /// Sets the [cache folder](Self::cache_folder).
    pub fn cache_folder(mut self, folder: CacheFolder) -> Self {
        self.cache_folder = folder;
        self
    }

    /// Sets the [limit of the cache folder](Self::cache_limit), in bytes.
    pub fn cache_limit(mut self, bytes: Option<u64>) -> Self {
        self.cache_limit = bytes;
        self
    }

    /// Sets the number of [products](Self::product_plans) whose algorithm is remembered; 0 is refused when the device is
    /// opened.
    pub fn product_plans(mut self, count: usize) -> Self {
        self.product_plans = count;
        self
    }

    /// Sets the number of [convolutions](Self::convolution_plans) whose algorithm is remembered; 0 is refused when the
    /// device is opened.
    pub fn convolution_plans(mut self, count: usize) -> Self {
        self.convolution_plans = count;
        self
    }

    /// Sets how long the host [spins](Self::spin) when it waits.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Rejects options that mean nothing.
    fn check(&self) -> Result<()> {
        let counts = [
            ("CudaOptions::product_plans", self.product_plans),
            ("CudaOptions::convolution_plans", self.convolution_plans),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            None => Ok(()),
            Some((what, _)) => Err(Error::Config {
                what: what.into(),
                reason: "the plan that is in use has to be remembered; use at least 1".into(),
            }),
        }
    }
}

/// Returns the number of GPUs that the driver reports.
///
/// # Errors
/// Returns [`Error::NoDevice`] without a driver, or with one that is too old.
pub fn device_count() -> Result<usize> {
    driver::device_count()
}

/// Checks that GPU number `ordinal` can be used.
///
/// # Errors
/// Returns [`Error::NoDevice`] with the missing component.
pub fn check(ordinal: usize) -> Result<()> {
    Context::open(ordinal).map(drop)
}

/// The pattern of poisoned memory: NaN in every float type, and no plausible index.
const POISON: u8 = 0xFF;

/// The state of the current capture.
#[derive(Debug)]
struct Capture {
    head: Option<UploadSizeClass>,
    invalidated: bool,
    /// The number of its nodes that are ours; `None` if the driver cannot report it.
    nodes: Option<usize>,
    /// Forks that are open, the innermost last; `None` where the driver cannot fork.
    forks: Vec<Option<Fork>>,
    /// The conditional nodes that are open, the innermost last.
    open: Vec<OpenConditional>,
    /// The bodies of all conditional nodes so far.
    bodies: BodiesOf,
    /// The outermost graph, once its capture was ended for the first time, to go on later.
    root: Option<Graph>,
    /// Set while the stream captures nothing, between two graphs.
    suspended: bool,
    /// The plans of its products, which the recording keeps.
    pins: Vec<Pin>,
    /// Objects of users' libraries, which the recording keeps.
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

/// A GPU as a [`Backend`].
pub struct CudaBackend {
    shared: Arc<Shared>,
    faults: Arc<Faults>,
    options: CudaOptions,
    disk: Disk,
    arenas: Vec<Arc<ArenaMemory>>,
    functions: FxHashMap<Kernel, (Function, u32)>,
    /// Sizes of the parameters of users' kernels, where the driver can say.
    parameters: FxHashMap<Function, Option<Vec<usize>>>,
    capture: Option<Capture>,
    /// The conditional nodes that the driver has.
    conditionals: ConditionalSupport,
    /// Set unless the driver has refused edges of dependent launch in the bodies of conditional nodes.
    bodies_overlap: bool,
    /// The last capture was invalidated by another thread.
    invalidated: bool,
    /// Set if kernels may have more than 4 KB of parameters; determined when one is first needed.
    has_large_params: bool,
    large_params_backoff: Backoff,
    /// Set if captures keep the driver's description of their graph.
    keeps_topology: bool,
    /// Set if the last thing on the stream was a kernel, not a graph: only next to a kernel can the next one
    /// be started early.
    after_kernel: bool,
    /// Memory for a kernel's parameter, used again.
    params: Vec<u8>,
    /// Graphs that eager kernels are launched as.
    singles: SingleKernelGraphs,
    /// The library for matrix products; opened by the first product. `None` inside: it is missing.
    blas: Option<Option<Blas>>,
    /// The library for convolutions; opened by the first convolution. `None` inside: it is missing.
    dnn: Option<Option<Dnn>>,
}

impl CudaBackend {
    /// Creates a backend on GPU number `ordinal`, with a new stream.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for options that mean nothing; [`Error::NoDevice`] without driver or GPU;
    /// [`Error::OutOfMemory`].
    pub fn new(ordinal: usize, options: CudaOptions) -> Result<Self> {
        options.check()?;
        let context = Context::open(ordinal)?;
        let stream = Stream::new(&context)?;
        Self::with_stream(stream, options)
    }

    /// Creates the backend on a stream of the user's.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for a stream that cannot be captured; as [`new`](Self::new).
    pub fn on(stream: Arc<CudaStream>, options: CudaOptions) -> Result<Self> {
        options.check()?;
        let context = Context::open(stream.context().ordinal())?;
        Self::with_stream(Stream::borrow(&context, stream)?, options)
    }

    fn with_stream(stream: Stream, options: CudaOptions) -> Result<Self> {
        let _bound = stream.context().bind()?;
        let shared = Arc::new(Shared::new(stream, options.spin)?);
        let faults = Arc::new(Faults::new(&shared)?);
        let version = driver::cuda_version().unwrap_or(0);
        let conditionals = ConditionalSupport::new(version, shared.stream.has_conditionals());
        Ok(Self {
            shared,
            faults,
            singles: SingleKernelGraphs::new(&options),
            disk: Disk::new(&options.cache_folder, options.cache_limit),
            options,
            arenas: Vec::new(),
            functions: FxHashMap::default(),
            parameters: FxHashMap::default(),
            capture: None,
            conditionals,
            bodies_overlap: true,
            invalidated: false,
            has_large_params: false,
            large_params_backoff: Backoff::default(),
            keeps_topology: false,
            after_kernel: false,
            params: Vec::new(),
            blas: None,
            dnn: None,
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
            reason: "no capture is under way".into(),
        })
    }

    /// Waits, and releases everything unused, for another try after the device was full.
    fn reclaim(&mut self) -> Result<()> {
        self.singles.release(&self.shared);
        self.shared.reclaim()
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    fn failed(&self, call: &'static str, reason: String) -> Error {
        Error::Device { device: self.shared.context.name().to_owned(), call, reason }
    }

    /// Ends the current capture.
    fn ended(
        &mut self,
        call: &'static str,
        retain: Vec<SharedMemory>,
        lends: bool,
    ) -> Result<Option<CudaCapturedGraph>> {
        let _bound = self.shared.context.bind()?;
        let foreign = self.check_foreign_launches();
        if let Err(reason) =
            self.capture.as_ref().map_or(Ok(()), |capture| conditional::check_end(&capture.open))
        {
            // The stream captures a body, or nothing: ending that would give a graph without what follows the node.
            self.abort_capture();
            return foreign.and(Err(self.failed(call, reason.into())));
        }
        let Some(mut capture) = self.capture.take() else {
            return Err(self.failed(call, "no capture is under way".into()));
        };
        capture.invalidated = self.shared.stream.capture_is_invalidated();
        self.invalidated = capture.invalidated;
        let ended = self.finish_capture(capture, retain, lends);
        foreign.and(ended)
    }

    /// A kernel, compiled and loaded if it is new. Loading is outside any capture's order.
    fn function(&mut self, kernel: Kernel, shared: u32) -> Result<Function> {
        if let Some(&(function, allowed)) = self.functions.get(&kernel)
            && shared <= allowed
        {
            return Ok(function);
        }
        let function = self
            .shared
            .context
            .unordered(|| compile::function(&self.shared.context, kernel, shared, &self.disk))?;
        let allowed = shared.max(SHARED_WITHOUT_REQUEST);
        self.functions.insert(kernel, (function, allowed));
        Ok(function)
    }

    /// Returns whether the 32 KB kernel is available: finding out compiles it. If it was once unavailable,
    /// for example for lack of memory, it is tried again later.
    fn large_params(&mut self, block: &HostUpload) -> bool {
        if UploadSizeClass::of(block, false).is_some() || !self.shared.context.props().large_params {
            // Not needed, or not to be had with this driver.
            return self.has_large_params;
        }
        // Too large even so: nothing can be learnt.
        let Some(class) = UploadSizeClass::of(block, true) else { return false };
        if !self.has_large_params && self.large_params_backoff.is_due() {
            match self.function(class.kernel(), 0) {
                Ok(_) => self.has_large_params = true,
                Err(error) => {
                    if self.large_params_backoff.failed() {
                        tracing::info!(%error, "host inputs above 4 KB go through pinned memory for now");
                    }
                }
            }
        }
        self.has_large_params
    }

    /// Uploads `block` on the stream with a separate kernel, or through pinned memory.
    fn upload(&mut self, block: &HostUpload) -> Result<()> {
        let large = self.large_params(block);
        match UploadSizeClass::of(block, large) {
            Some(class) => self.upload_by_kernel(class, block),
            None => {
                // As behind `upload_by_kernel`: the next kernel waits for all of it.
                self.after_kernel &= self.capture.is_some();
                let writes = block.writes.iter();
                staging::write(
                    &self.shared,
                    writes.map(|&(addr, offset, bytes)| (addr, &block.bytes[offset..offset + bytes])),
                )?;
                let copies = HostUpload { copies: block.copies.clone(), ..HostUpload::default() };
                // Each fits many times; more than that goes in several launches.
                for part in copies.copies.chunks(128) {
                    let part = HostUpload { copies: part.to_vec(), ..HostUpload::default() };
                    if let Some(class) = UploadSizeClass::of(&part, false) {
                        self.upload_by_kernel(class, &part)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn upload_by_kernel(&mut self, class: UploadSizeClass, block: &HostUpload) -> Result<()> {
        let function = self.function(class.kernel(), 0)?;
        let mut params = std::mem::take(&mut self.params);
        class.pack(block, &mut params);
        let launched = self.watched(true, |backend| {
            let plain = backend.capture.is_none();
            let grid = class.grid(block, backend.shared.context.props());
            backend.shared.stream.launch(function, grid, &params, plain)
        });
        // It may write a new parameter, which kernels may load before earlier ones have ended: the next one waits for all of it.
        self.after_kernel &= self.capture.is_some();
        self.params = params;
        launched
    }
}

impl CudaBackend {
    /// Returns the driver's description of a captured graph, with our kernels by their own names.
    fn topology(&self, graph: &Graph, bodies: &BodiesOf) -> Result<Topology> {
        let names: FxHashMap<Function, &str> =
            self.functions.iter().map(|(kernel, &(function, _))| (function, kernel.name)).collect();
        graph.topology(&|function| names.get(&function).copied(), bodies)
    }
}

impl CudaBackend {
    /// The error of a library, which does not say whether the context is lost.
    fn said_by_library(&self, error: Error) -> Error {
        if !matches!(error, Error::OperationFailed { .. }) {
            return error;
        }
        match self.shared.context.or_lost(self.failed("launch", String::new())) {
            lost @ Error::ContextLost { .. } => lost,
            _ => error,
        }
    }
}

impl Submit for CudaBackend {
    fn props(&self) -> &DeviceProperties {
        self.shared.context.props()
    }

    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()> {
        let function = self.function(kernel, grid.shared)?;
        if self.capture.is_none() {
            return self.launch_eagerly(function, grid, params, kernel.unit.source.waits);
        }
        self.watched(true, |backend| backend.shared.stream.launch(function, grid, params, false))
    }

    fn parameter_sizes(&mut self, kernel: Kernel, grid: CudaGrid) -> Result<Option<&[usize]>> {
        let function = self.function(kernel, grid.shared_bytes)?;
        let context = &self.shared.context;
        Ok(match self.parameters.entry(function) {
            Entry::Occupied(known) => known.into_mut().as_deref(),
            Entry::Vacant(new) => {
                new.insert(context.unordered(|| function.parameter_sizes(context))?).as_deref()
            }
        })
    }

    fn submit_list(&mut self, kernel: Kernel, grid: CudaGrid, parameters: &[&[u8]]) -> Result<()> {
        let function = self.function(kernel, grid.shared_bytes)?;
        if self.capture.is_none() {
            self.before_plain_kernel();
            return self.shared.stream.launch_list(function, grid, parameters);
        }
        self.watched(true, |backend| backend.shared.stream.launch_list(function, grid, parameters))
    }

    fn work_in_context(&mut self, work: &mut dyn FnMut(&Arc<CudaContext>) -> Result<()>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let worked = shared.context.unordered(|| work(shared.stream.cudarc().context()));
        worked.map_err(|error| self.said_by_library(error))
    }

    fn work_on_stream(
        &mut self,
        keep: Box<dyn Any + Send + Sync>,
        work: &mut dyn FnMut(&Arc<CudaStream>, bool) -> Result<()>,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let is_captured = self.capture.is_some();
        self.after_kernel = false;
        // The library may load code or allocate now, which would invalidate a capture.
        let worked =
            self.watched(false, |_| shared.context.unordered(|| work(shared.stream.cudarc(), is_captured)));
        match &mut self.capture {
            Some(capture) => capture.kept.push(keep),
            // Part of the work may be on the stream, whatever went wrong.
            None => shared.retire_owner(keep),
        }
        worked.map_err(|error| self.said_by_library(error))
    }

    fn keep_with_recording(&mut self, what: Arc<dyn Any + Send + Sync>) {
        if let Some(capture) = &mut self.capture {
            capture.kept.push(Box::new(what));
        }
    }

    fn faults(&self) -> FaultSink {
        self.faults.sink()
    }

    fn fault_op(&mut self, name: &'static str) -> u32 {
        self.faults.number(Reporter::Operation(name))
    }

    fn fault_loop(&mut self, at: &'static Location<'static>) -> u32 {
        self.faults.number(Reporter::Loop(at))
    }

    fn product_workspace(&mut self, product: Product<'_>, measure: bool) -> Result<u64> {
        self.workspace_of_product(product, measure)
    }

    fn product(&mut self, product: Product<'_>, workspace: u64) -> Result<()> {
        self.launch_product(product, workspace)
    }

    fn convolution_workspace(&mut self, convolution: &Convolution) -> Result<Option<u64>> {
        self.workspace_of_convolution(convolution)
    }

    fn convolution(
        &mut self,
        convolution: &Convolution,
        at: ConvolutionAddresses,
        workspace: u64,
    ) -> Result<()> {
        self.launch_convolution(convolution, at, workspace)
    }
}

impl Diagnostics for CudaBackend {
    fn name(&self) -> String {
        self.shared.context.name().to_owned()
    }

    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        self.shared.context.memory().map(Some)
    }

    fn eager_graphs(&self) -> (usize, u64) {
        self.singles.usage()
    }

    fn staging_waits(&self) -> u64 {
        self.shared.staging_waits()
    }

    fn caches(&self) -> CacheStats {
        let (compiled, compiled_on_disk) = compile::counts();
        let (disk_entries, disk_bytes) = self.disk.usage();
        let mut stats = CacheStats {
            kernels: self.functions.len(),
            compiled,
            compiled_on_disk,
            convolution_plans: self.dnn.iter().flatten().map(Dnn::len).sum(),
            disk_entries,
            disk_bytes,
            disk_evicted: self.disk.evicted(),
            ..CacheStats::default()
        };
        if let Some(Some(blas)) = &self.blas {
            blas.add_to(&mut stats);
        }
        stats
    }

    fn clear_caches(&mut self) -> Result<()> {
        let _bound = self.outside_capture("clear_caches")?;
        if let Some(Some(blas)) = &mut self.blas {
            blas.clear();
        }
        if let Some(Some(dnn)) = &mut self.dnn {
            dnn.clear();
        }
        Ok(())
    }

    fn clear_disk_cache(&mut self) -> Result<u64> {
        let _bound = self.outside_capture("clear_disk_cache")?;
        Ok(self.disk.clear())
    }

    fn keep_topology(&mut self, on: bool) {
        self.keeps_topology = on;
    }
}

impl Backend for CudaBackend {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaBackend {
    fn drop(&mut self) {
        self.abort_capture();
        self.singles.release(&self.shared);
        // Before its stream.
        self.dnn = None;
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
