//! Libraries of users, which launch on the runtime's stream.

use std::{error::Error as StdError, fmt, sync::Arc};

use cudarc::driver::{CudaContext, CudaStream};

use crate::{
    Result,
    backend::{View, shapes::Shapes},
};

/// A library with an operation: cuFFT with a plan, cuDNN with a handle, a package with a C interface.
///
/// The value owns the plan, handle or pool that the library needs. It is kept as long as something may use it: by its
/// operation, by the work that was launched and has not ended, and by every recording that holds such work. So its `Drop`
/// may free what it owns at once; it runs on whatever thread lets go last, never in a capture of this runtime.
///
/// [`prepare`](Self::prepare) and [`launch`](Self::launch) may be called by several runtimes at once, on several threads and
/// for several devices. A library whose plan is set up for each launch (its stream, its workspace) holds a lock meanwhile.
///
/// # Safety
/// Each call of [`prepare`](Self::prepare) leaves the thread's current context, and that context's state, as they were, and
/// puts no work on streams of the runtime. Whatever it puts on other streams has ended when it returns.
///
/// Each call of [`launch`](Self::launch)
/// - puts all of its work on [`CudaCall::stream`], or on streams that it forks from that one and joins to it again by
///   events;
/// - reads no memory but the inputs, states and workspace of the call, and memory that `self` owns; writes none but the
///   outputs, states and workspace of the call, and memory that `self` owns; each within the sizes of the call. The
///   addresses of the call are valid for this work only: it keeps none of them;
/// - writes all of each output, as a function of what it reads alone: the work may run again, as it is, any number of times,
///   and other work of `self` may run between;
/// - frees, moves or overwrites nothing that the work of earlier calls uses, as recordings run that work again later. Work of
///   two calls may run at the same time, in branches of a recording or for two runtimes: memory of `self` that work writes is
///   that call's alone, so temporary data belongs into the workspace;
/// - leaves the thread's current context, and that context's state, as they were.
///
/// If [`may_be_captured`](Self::may_be_captured) is `true`, a call of `launch` under capture also
/// - does only what CUDA permits in a capture of mode `cudaStreamCaptureModeRelaxed`: no synchronisation of the stream, the
///   device or an event of it, no query of the stream, and no copy of pageable host memory;
/// - does not put host values into the work that change from call to call, nor a host callback that uses them.
pub unsafe trait CudaLibrary: Send + Sync + 'static {
    /// Returns whether a capture may hold the work. If not, the operation is refused in segments, in every mode and on
    /// every device, with [`Error::NotCapturable`](crate::Error::NotCapturable).
    fn may_be_captured(&self) -> bool;

    /// Makes what a launch with these shapes needs, such as a plan, and returns how many bytes of workspace it needs: memory
    /// of the runtime, aligned to 256 bytes, that holds anything and is the launch's until its work has ended.
    ///
    /// It is called before each launch, so it keeps what it makes. The device's primary context, `context`, is current. It may
    /// allocate, load and wait for streams of its own: the first call with some shapes is never made during a capture of this
    /// runtime, because a segment runs once before it is recorded.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn prepare(&self, context: &Arc<CudaContext>, shapes: &Shapes<'_>) -> Result<u64, LibraryError> {
        let _ = (context, shapes);
        Ok(0)
    }

    /// Puts the operation on the stream. The device's primary context is current, and no lock is held.
    ///
    /// # Errors
    /// Returns what the library reports; it becomes [`Error::OperationFailed`](crate::Error::OperationFailed). A recording
    /// that is under way is abandoned.
    fn launch(&self, call: &CudaCall<'_>) -> Result<(), LibraryError>;
}

/// An error of a library: any error, or text.
pub type LibraryError = Box<dyn StdError + Send + Sync>;

/// A closure as a library: it launches, and may be captured.
pub struct CudaLaunch<F>(F);

impl<F: Fn(&CudaCall<'_>) -> Result<(), LibraryError> + Send + Sync + 'static> CudaLaunch<F> {
    /// Makes a library of `launch`, which is called for each launch.
    ///
    /// # Safety
    /// The closure upholds what [`CudaLibrary`] demands of [`launch`](CudaLibrary::launch), also under capture.
    pub unsafe fn new(launch: F) -> Self {
        Self(launch)
    }
}

impl<F> fmt::Debug for CudaLaunch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CudaLaunch")
    }
}

// SAFETY: whoever made it promised what the trait demands.
unsafe impl<F: Fn(&CudaCall<'_>) -> Result<(), LibraryError> + Send + Sync + 'static> CudaLibrary
    for CudaLaunch<F>
{
    fn may_be_captured(&self) -> bool {
        true
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<(), LibraryError> {
        (self.0)(call)
    }
}

/// The operands of a launch of a [`CudaLibrary`].
pub struct CudaCall<'a> {
    op: &'static str,
    stream: &'a Arc<CudaStream>,
    is_captured: bool,
    operands: Shapes<'a>,
    workspace: u64,
}

impl<'a> CudaCall<'a> {
    /// A launch of the operation `op`.
    pub(crate) fn new(
        op: &'static str,
        stream: &'a Arc<CudaStream>,
        is_captured: bool,
        operands: Shapes<'a>,
        workspace: u64,
    ) -> Self {
        Self { op, stream, is_captured, operands, workspace }
    }

    /// Returns the stream to work on; `cu_stream()` is the driver's handle, which is also the runtime API's.
    pub fn stream(&self) -> &'a Arc<CudaStream> {
        self.stream
    }

    /// Returns whether the work is captured, and runs later.
    pub fn is_captured(&self) -> bool {
        self.is_captured
    }

    /// Returns the sizes of the operands; those of padded dimensions are the bucket's.
    pub fn shapes(&self) -> Shapes<'a> {
        self.operands
    }

    /// Returns the address of an input's first element; 0 if there is no such input.
    pub fn input(&self, index: usize) -> u64 {
        address(self.operands.inputs, index)
    }

    /// Returns the strides of an input, in elements: row-major unless the call passed a view.
    pub fn strides(&self, index: usize) -> &'a [usize] {
        self.operands.inputs.get(index).map_or(&[], |view| view.layout.strides())
    }

    /// Returns the address of an output; 0 if there is no such output.
    pub fn output(&self, index: usize) -> u64 {
        address(self.operands.outputs, index)
    }

    /// Returns the address of a state; 0 if there is no such state.
    pub fn state(&self, index: usize) -> u64 {
        address(self.operands.states, index)
    }

    /// Returns the address of the workspace; 0 if none was asked for.
    pub fn workspace(&self) -> u64 {
        self.workspace
    }
}

impl fmt::Debug for CudaCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaCall").field("op", &self.op).finish_non_exhaustive()
    }
}

fn address(views: &[View], index: usize) -> u64 {
    views.get(index).map_or(0, |view| view.addr)
}
