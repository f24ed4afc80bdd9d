//! Streams: ours, or the user's.

use std::{ffi::c_void, fmt, sync::Arc};

use super::{
    Context, Event, Function, Graph,
    types::{CUattribute, CUlaunch, Handle},
};
use smallvec::SmallVec;

use crate::{
    Error, Result,
    backend::cuda::{custom::CudaGrid, kernels::Grid},
};

/// A stream that work goes to, in order.
pub(crate) struct Stream {
    context: Arc<Context>,
    raw: Handle,
    /// Destroys it when the last clone goes. `None` only at the end.
    owner: Option<Arc<cudarc::driver::CudaStream>>,
}

// SAFETY: a stream belongs to its context, not to a thread (CUDA Driver API, "Stream Management"); `context` and `owner` keep
// both alive. A capture in thread-local mode ends on the thread where it began: the backend that captures does not leave
// that thread meanwhile.
unsafe impl Send for Stream {}
// SAFETY: the methods only pass the handle to the driver, which puts work from several threads into one order: only graphs
// have to be serialised by the caller (CUDA Driver API, "Graph object thread safety").
unsafe impl Sync for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("raw", &self.raw).finish()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // cudarc makes the context current to destroy it, and leaves it so.
        let _bound = self.context.bind();
        self.owner = None;
    }
}

impl Stream {
    /// Creates a stream that does not wait for the legacy default stream. It is one of cudarc's, so that the
    /// user's code can launch on it.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`].
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let failed = |error: cudarc::driver::DriverError| Error::NoDevice {
            device: context.name().to_owned(),
            reason: format!("no stream could be made: {error}"),
        };
        // cudarc makes the context current, and leaves it so.
        let _bound = context.bind()?;
        // Our context is open, so the driver is there and cudarc finds it too.
        let cuda = cudarc::driver::CudaContext::new(context.ordinal()).map_err(failed)?;
        // With events on, the first stream of a context object waits for the whole device, which invalidates
        // the captures of others. SAFETY: nothing was allocated through this context object yet.
        unsafe { cuda.disable_event_tracking() };
        let stream = cuda.new_stream().map_err(failed)?;
        // From here on they are on: the user may create other streams of this object, and cudarc orders their
        // work with events. Our own launches do not go through it. SAFETY: nothing was allocated through this
        // context object yet.
        unsafe { cuda.enable_event_tracking() };
        Self::borrow(context, stream)
    }

    /// The user's stream.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for a stream that cannot be captured: the legacy default stream, one that
    /// waits for it, or one of another context.
    pub(crate) fn borrow(context: &Arc<Context>, stream: Arc<cudarc::driver::CudaStream>) -> Result<Self> {
        let refuse = |reason: &str| Err(Error::Config { what: "the stream".into(), reason: reason.into() });
        let _bound = context.bind()?;
        let raw: Handle = stream.cu_stream().cast();
        const LEGACY: usize = 1;
        const PER_THREAD: usize = 2;
        if raw.is_null() || raw as usize == LEGACY {
            return refuse(
                "it is the legacy default stream, which cannot be captured; use `context.new_stream()`",
            );
        }
        if raw as usize == PER_THREAD {
            return refuse(
                "it is the per-thread default stream, another one on each thread; use `context.new_stream()`",
            );
        }
        let mut of = std::ptr::null_mut();
        // SAFETY: the stream lives, since `stream` does; one handle is written.
        let code = unsafe { (context.table.stream_context)(raw, &mut of) };
        context.check("cuStreamGetCtx", code)?;
        if of != context.raw() {
            return refuse(
                "it belongs to another context than the device's primary one; make it with `CudaContext::new`",
            );
        }
        let mut flags = 0;
        // SAFETY: the stream lives; one integer is written.
        let code = unsafe { (context.table.stream_flags)(raw, &mut flags) };
        context.check("cuStreamGetFlags", code)?;
        if flags & 1 == 0 {
            return refuse(
                "it waits for the legacy default stream (a blocking stream), which a capture forbids; create it \
                 as non-blocking, as `context.new_stream()` does",
            );
        }
        Ok(Self { context: Arc::clone(context), raw, owner: Some(stream) })
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> Handle {
        self.raw
    }

    /// As cudarc knows it.
    pub(crate) fn cudarc(&self) -> &Arc<cudarc::driver::CudaStream> {
        match &self.owner {
            Some(owner) => owner,
            None => unreachable!("taken when the stream is dropped"),
        }
    }

    /// Makes later work wait for the work that is currently on `other`.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn wait_for_stream(&self, other: &cudarc::driver::CudaStream) -> Result<()> {
        let raw: Handle = other.cu_stream().cast();
        if raw == self.raw {
            return Ok(());
        }
        let event = Event::new(&self.context, false)?;
        event.record_raw(raw)?;
        self.wait_for(&event)
    }

    /// Its context.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Launches, or records, a kernel with one parameter of plain bytes. With `overlap`, it may be started
    /// while its predecessor ends; this is not used during captures, whose edges [`Graph::overlap`] changes
    /// instead: in a capture that another thread invalidates, the driver crashes on such a launch (580.159).
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn launch(&self, function: Function, grid: Grid, params: &[u8], overlap: bool) -> Result<()> {
        let mut list = [params.as_ptr().cast_mut().cast::<c_void>()];
        // Its one parameter has this size, asserted where the kernels are listed. Every kernel that is launched with
        // `overlap` waits for the one before it (`in_order` in `common.cuh`).
        let of_user =
            CudaGrid { blocks: grid.blocks, threads: [grid.threads, 1, 1], shared_bytes: grid.shared };
        self.launch_with(function, of_user, grid.cluster, &mut list, overlap)
    }

    /// Launches, or records, a kernel with a list of parameters; it is brought up when the one before it has ended.
    ///
    /// # Errors
    /// As [`Context::check`].
    pub(crate) fn launch_list(&self, function: Function, grid: CudaGrid, parameters: &[&[u8]]) -> Result<()> {
        let mut list: SmallVec<[*mut c_void; 16]> =
            parameters.iter().map(|bytes| bytes.as_ptr().cast_mut().cast::<c_void>()).collect();
        self.launch_with(function, grid, 1, &mut list, false)
    }

    fn launch_with(
        &self,
        function: Function,
        grid: CudaGrid,
        cluster: u32,
        list: &mut [*mut c_void],
        overlap: bool,
    ) -> Result<()> {
        const CLUSTER_DIMENSION: i32 = 4;
        const PROGRAMMATIC_ORDER: i32 = 6;
        let mut attributes: SmallVec<[CUattribute; 2]> = SmallVec::new();
        if cluster > 1 {
            let mut rest = [0; 15];
            rest[..2].fill(1);
            attributes.push(CUattribute { id: CLUSTER_DIMENSION, pad: 0, value: cluster as i32, rest });
        }
        if overlap && self.context.props().overlaps {
            attributes.push(CUattribute { id: PROGRAMMATIC_ORDER, pad: 0, value: 1, rest: [0; 15] });
        }
        let launch = CUlaunch {
            grid: grid.blocks,
            block: grid.threads,
            shared: grid.shared_bytes,
            stream: self.raw,
            attributes: attributes.as_ptr(),
            count: attributes.len() as u32,
        };
        // SAFETY: the list points to as many parameters as the kernel takes, each of its size: of our kernels as
        // `launch` says, of users' by the contract of `CudaKernel::new`. The driver copies them during the call, as it
        // does the description. Addresses in them were checked by the core.
        let code = unsafe {
            (self.context.table.launch)(&launch, function.raw(), list.as_mut_ptr(), std::ptr::null_mut())
        };
        self.context.check("cuLaunchKernelEx", code)
    }

    /// Sets bytes.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn fill(&self, addr: u64, value: u8, bytes: u64) -> Result<()> {
        // SAFETY: the caller owns the range; the core checked it.
        let code = unsafe { (self.context.table.fill)(addr, value, bytes as usize, self.raw) };
        self.context.check("cuMemsetD8Async", code)
    }

    /// Later work waits for the event.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles live.
        let code = unsafe { (self.context.table.stream_wait)(self.raw, event.raw(), 0) };
        self.context.check("cuStreamWaitEvent", code)
    }

    /// Waits for everything on this stream, and only for that.
    ///
    /// # Errors
    /// Returns failures on the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: the handle lives.
        let code = unsafe { (self.context.table.stream_synchronize)(self.raw) };
        self.context.check("cuStreamSynchronize", code)
    }

    /// Starts to capture the work of this thread on the stream.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn begin_capture(&self) -> Result<()> {
        const THREAD_LOCAL: i32 = 1;
        let _bound = self.context.bind()?;
        // SAFETY: the handle lives; the stream is not capturing.
        let code = unsafe { (self.context.table.stream_begin_capture)(self.raw, THREAD_LOCAL) };
        self.context.check("cuStreamBeginCapture", code)
    }

    /// Ends the capture. The stream is usable again in every case. Also returns whether the capture was
    /// invalidated.
    ///
    /// # Errors
    /// Returns the reason why the capture is invalid.
    pub(crate) fn end_capture(&self) -> (bool, Result<Graph>) {
        let _bound = match self.context.bind() {
            Ok(bound) => bound,
            Err(error) => return (false, Err(error)),
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives; one handle is written.
        let code = unsafe { (self.context.table.stream_end_capture)(self.raw, &mut raw) };
        let graph = (!raw.is_null()).then(|| Graph::adopt(&self.context, raw));
        let graph = self.context.check("cuStreamEndCapture", code).and_then(|()| {
            graph.ok_or_else(|| Error::Device {
                device: self.context.name().to_owned(),
                call: "cuStreamEndCapture",
                reason: "the capture was invalidated and gave no graph".into(),
            })
        });
        (code == super::error::CAPTURE_INVALIDATED, graph)
    }

    /// Ends a capture into a graph that has an owner. The stream is usable again in every case. Also returns whether
    /// the capture was invalidated.
    ///
    /// # Errors
    /// Returns the reason why the capture is invalid.
    pub(crate) fn end_capture_of_known(&self) -> (bool, Result<()>) {
        let _bound = match self.context.bind() {
            Ok(bound) => bound,
            Err(error) => return (false, Err(error)),
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives; one handle is written: that of the graph, which its owner destroys.
        let code = unsafe { (self.context.table.stream_end_capture)(self.raw, &mut raw) };
        (code == super::error::CAPTURE_INVALIDATED, self.context.check("cuStreamEndCapture", code))
    }

    /// Returns whether the current capture has been invalidated.
    pub(crate) fn capture_is_invalidated(&self) -> bool {
        const INVALIDATED: i32 = 2;
        let Ok(_bound) = self.context.bind() else { return false };
        let mut status = 0;
        // SAFETY: the handle lives; one integer is written.
        let code = unsafe { (self.context.table.stream_capturing)(self.raw, &mut status) };
        code == super::error::CAPTURE_INVALIDATED || (code == 0 && status == INVALIDATED)
    }
}
