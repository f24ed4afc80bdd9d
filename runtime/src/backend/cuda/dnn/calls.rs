//! The library's handle and descriptors, each with its owner.

use std::{
    ffi::{c_int, c_void},
    sync::{Mutex, PoisonError},
};

use super::library::{Heuristic, Table, name_of, table};
use crate::{
    DType, Error, Result,
    backend::cuda::{
        functions::{Owned, Raw, Status},
        kernels::{Convolution, ConvolutionAddresses, Order},
    },
};

// Numbers of cudnn_graph.h and cudnn_cnn.h.
const FLOAT: c_int = 0;
const HALF: c_int = 2;
const BFLOAT16: c_int = 9;
const NCHW: c_int = 0;
const NHWC: c_int = 1;
const CROSS_CORRELATION: c_int = 1;
const DEFAULT_MATH: c_int = 0; // Rounds f32 to TF32.
const TENSOR_OP_MATH: c_int = 1;
const FMA_MATH: c_int = 3;
const FFT: c_int = 4;
const FFT_TILING: c_int = 5;
const WINOGRAD: c_int = 6;
const WINOGRAD_NONFUSED: c_int = 7;
/// Algorithms that exist.
const ALGORITHMS: usize = 8;

fn check(table: &Table, call: &'static str, status: Status) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Error::Device { device: "cuDNN".into(), call, reason: name_of(table, status) })
}

/// Returns whether a status says that the library does not do such a thing, rather than that something went wrong.
fn is_refusal(status: Status) -> bool {
    (2000..4000).contains(&status)
}

fn data_type(dtype: DType) -> Option<c_int> {
    match dtype {
        DType::F32 => Some(FLOAT),
        DType::F16 => Some(HALF),
        DType::Bf16 => Some(BFLOAT16),
        _ => None,
    }
}

/// The descriptors of one convolution.
#[derive(Debug)]
pub(super) struct Descriptors {
    x: Owned,
    w: Owned,
    y: Owned,
    convolution: Owned,
}

/// One way in which the library computes a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Algorithm {
    number: c_int,
    math: c_int,
    /// Bytes of workspace.
    pub(super) workspace: u64,
}

impl Algorithm {
    /// Returns whether it is a Fourier transform, of images or of their tiles.
    pub(super) fn is_fourier(&self) -> bool {
        matches!(self.number, FFT | FFT_TILING)
    }

    /// Returns whether it is a transform of Winograd, of tiles of images.
    pub(super) fn is_winograd(&self) -> bool {
        matches!(self.number, WINOGRAD | WINOGRAD_NONFUSED)
    }
}

/// Sizes as the library takes them; `None` if one is too large.
struct Sizes {
    dtype: c_int,
    format: c_int,
    x: [c_int; 4],
    w: [c_int; 4],
    y: [c_int; 4],
    padding: [c_int; 2],
    stride: [c_int; 2],
    dilation: [c_int; 2],
    groups: c_int,
    math: c_int,
}

impl Sizes {
    fn of(of: &Convolution) -> Option<Self> {
        Some(Self {
            dtype: data_type(of.dtype)?,
            format: match of.order {
                Order::ChannelsLast => NHWC,
                Order::ChannelsFirst => NCHW,
            },
            x: numbers(of.x)?,
            w: numbers(of.w)?,
            y: numbers(of.y)?,
            padding: numbers(of.padding)?,
            stride: numbers(of.stride)?,
            dilation: numbers(of.dilation)?,
            groups: c_int::try_from(of.groups).ok()?,
            math: match (of.dtype, of.tf32) {
                (DType::F32, false) => FMA_MATH,
                (DType::F32, true) => DEFAULT_MATH,
                _ => TENSOR_OP_MATH,
            },
        })
    }
}

fn numbers<const N: usize>(values: [usize; N]) -> Option<[c_int; N]> {
    let mut out = [0; N];
    for (out, value) in out.iter_mut().zip(values) {
        *out = c_int::try_from(value).ok()?;
    }
    Some(out)
}

/// The library with a handle for one stream.
#[derive(Debug)]
pub(super) struct Calls {
    table: &'static Table,
    context: usize,
    handle: Handle,
}

/// A handle of the library, which belongs to one thread at a time, and to the stream that was set last.
#[derive(Debug)]
struct Handle {
    raw: Raw,
}

// SAFETY: a handle has one owner, so one thread at a time uses it. cuDNN ties a handle to a context, not to a thread, and
// asks only that threads do not use one handle at the same time (cuDNN documentation, "Thread Safety").
unsafe impl Send for Handle {}

/// Handles without an owner, by the address of their context. A handle is never destroyed: that, as making one, waits for the
/// whole device, which would invalidate captures on other threads. So there are as many as streams had one at the same time.
static FREE: Mutex<Vec<(usize, Handle)>> = Mutex::new(Vec::new());

impl Calls {
    /// Loads the library and takes or makes a handle in `context`, which is current.
    ///
    /// # Safety
    /// `stream` must be a stream of that context that lives until the result has been dropped.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`] without the library; [`Error::Device`] if it refuses the device.
    pub(super) unsafe fn new(context: usize, stream: Raw) -> Result<Self> {
        let table = table()?;
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match free.iter().position(|(of, _)| *of == context) {
            Some(at) => free.swap_remove(at).1,
            None => Self::make_handle(table)?,
        };
        drop(free);
        let calls = Self { table, context, handle };
        // SAFETY: the handle is alive and ours, and the stream is of its context.
        let status = unsafe { (table.set_stream)(calls.handle.raw, stream) };
        check(table, "cudnnSetStream", status)?;
        Ok(calls)
    }

    fn make_handle(table: &Table) -> Result<Handle> {
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: writes one handle to `raw`.
        let status = unsafe { (table.create)(&mut raw) };
        check(table, "cudnnCreate", status)?;
        Ok(Handle { raw })
    }

    /// The library's version, such as 91300, and where it was found.
    pub(super) fn version(&self) -> (usize, &str) {
        // SAFETY: takes nothing.
        let version = unsafe { (self.table.version)() };
        (version, &self.table.path)
    }

    fn make(
        &self,
        call: &'static str,
        create: unsafe extern "C" fn(*mut Raw) -> Status,
        destroy: unsafe extern "C" fn(Raw) -> Status,
    ) -> Result<Owned> {
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: writes one descriptor to `raw`.
        let status = unsafe { create(&mut raw) };
        check(self.table, call, status)?;
        // SAFETY: made just now, for us, as plain memory without thread-local state, with the function that ends it.
        Ok(unsafe { Owned::new(raw, destroy) })
    }

    /// A tensor `[N, H, W, C]`; the library's functions take sizes as N, C, H, W in either order of memory.
    fn tensor(&self, sizes: &Sizes, [n, h, w, c]: [c_int; 4]) -> Result<(Owned, Status)> {
        let t = self.table;
        let tensor = self.make("cudnnCreateTensorDescriptor", t.tensor_create, t.tensor_destroy)?;
        // SAFETY: the descriptor is alive and a tensor's; the numbers are copied.
        let status = unsafe { (t.tensor_set)(tensor.raw(), sizes.format, sizes.dtype, n, c, h, w) };
        Ok((tensor, status))
    }

    fn filter(&self, sizes: &Sizes, [out, h, w, c]: [c_int; 4]) -> Result<(Owned, Status)> {
        let t = self.table;
        let filter = self.make("cudnnCreateFilterDescriptor", t.filter_create, t.filter_destroy)?;
        // SAFETY: the descriptor is alive and a filter's; the numbers are copied.
        let status = unsafe { (t.filter_set)(filter.raw(), sizes.dtype, sizes.format, out, c, h, w) };
        Ok((filter, status))
    }

    fn windows(&self, sizes: &Sizes) -> Result<(Owned, Status)> {
        let t = self.table;
        let windows =
            self.make("cudnnCreateConvolutionDescriptor", t.convolution_create, t.convolution_destroy)?;
        let ([ph, pw], [sh, sw], [dh, dw]) = (sizes.padding, sizes.stride, sizes.dilation);
        // SAFETY: the descriptor is alive and a convolution's; the numbers are copied.
        let set =
            unsafe { (t.convolution_set)(windows.raw(), ph, pw, sh, sw, dh, dw, CROSS_CORRELATION, FLOAT) };
        // SAFETY: the descriptor is alive and a convolution's; the number of groups is copied.
        let groups = unsafe { (t.set_groups)(windows.raw(), sizes.groups) };
        // SAFETY: the descriptor is alive and a convolution's; the math type is copied.
        let math = unsafe { (t.set_math)(windows.raw(), sizes.math) };
        let status = [set, groups, math].into_iter().find(|&status| status != 0);
        Ok((windows, status.unwrap_or(0)))
    }

    /// Returns the descriptors of a convolution; `None` if the library has none of this kind.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) fn describe(&self, of: &Convolution) -> Result<Option<Descriptors>> {
        let Some(sizes) = Sizes::of(of) else { return Ok(None) };
        let (x, a) = self.tensor(&sizes, sizes.x)?;
        let (w, b) = self.filter(&sizes, sizes.w)?;
        let (y, c) = self.tensor(&sizes, sizes.y)?;
        let (convolution, d) = self.windows(&sizes)?;
        match [a, b, c, d].into_iter().find(|&status| status != 0) {
            None => Ok(Some(Descriptors { x, w, y, convolution })),
            Some(status) if is_refusal(status) => Ok(None),
            Some(status) => check(self.table, "describing a convolution", status).map(|()| None),
        }
    }

    /// Returns the algorithms that can be used, the likely fastest first. Their results are the same in every run, and their
    /// sums f32.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) fn algorithms(&self, of: &Convolution, on: &Descriptors) -> Result<Vec<Algorithm>> {
        let mut found = [Heuristic::default(); ALGORITHMS];
        let mut count: c_int = 0;
        // SAFETY: handle and descriptors are alive, and ours alone; `found` has room for as many results
        // as are asked for, of which the library writes `count`.
        let status = unsafe {
            (self.table.heuristics)(
                self.handle.raw,
                on.x.raw(),
                on.w.raw(),
                on.convolution.raw(),
                on.y.raw(),
                ALGORITHMS as c_int,
                &mut count,
                found.as_mut_ptr(),
            )
        };
        if is_refusal(status) {
            return Ok(Vec::new());
        }
        check(self.table, "cudnnGetConvolutionForwardAlgorithm_v7", status)?;
        let count = usize::try_from(count).unwrap_or(0).min(ALGORITHMS);
        let usable = found[..count].iter().filter(|found| {
            found.status == 0
                && found.deterministic == 1
                // Others might round f32 first.
                && (of.dtype != DType::F32 || of.tf32 || found.math == FMA_MATH)
        });
        Ok(usable
            .map(|found| Algorithm {
                number: found.algo,
                math: found.math,
                workspace: found.workspace as u64,
            })
            .collect())
    }

    /// Adds a convolution to the stream, or to the current capture on it.
    ///
    /// # Safety
    /// The addresses must refer to the operands that `on` describes, on
    /// the device, aligned to 16, and `workspace` to as many bytes as the algorithm states, aligned to 256; all of them must remain valid
    /// until the convolution has run.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) unsafe fn forward(
        &self,
        on: &mut Descriptors,
        algorithm: Algorithm,
        at: ConvolutionAddresses,
        workspace: u64,
    ) -> Result<()> {
        // SAFETY: the descriptor is alive and a convolution's.
        let status = unsafe { (self.table.set_math)(on.convolution.raw(), algorithm.math) };
        check(self.table, "cudnnSetConvolutionMathType", status)?;
        let (one, zero) = (1.0f32, 0.0f32);
        let pointer = |addr: u64| addr as usize as *mut c_void;
        // SAFETY: handle and descriptors are alive, the scalars are read during the call, and the caller vouches for the
        // addresses and the stream. `beta` is 0, so the result is not read.
        let status = unsafe {
            (self.table.forward)(
                self.handle.raw,
                std::ptr::from_ref(&one).cast(),
                on.x.raw(),
                pointer(at.x),
                on.w.raw(),
                pointer(at.w),
                on.convolution.raw(),
                algorithm.number,
                pointer(workspace),
                algorithm.workspace as usize,
                std::ptr::from_ref(&zero).cast(),
                on.y.raw(),
                pointer(at.y),
            )
        };
        check(self.table, "cudnnConvolutionForward", status)
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // The stream may end before the handle has another one: none is shown to the library after its end.
        // SAFETY: the handle is alive and ours; null is the stream that every context has.
        let status = unsafe { (self.table.set_stream)(self.handle.raw, std::ptr::null_mut()) };
        if status == 0 {
            let handle = Handle { raw: self.handle.raw };
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push((self.context, handle));
        }
    }
}
