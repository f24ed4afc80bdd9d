//! The interface between the runtime and a device, and its implementations.
//!
//! The core above validates everything: addresses, shapes, phases, ownership. A backend executes what it is
//! given, in stream order, and reports what only it can know.
//!
//! # Stability
//!
//! **Unstable.** This module is public for tests and for custom devices: any release may change it, and
//! semantic versioning does not cover it. The options of the devices are stable as
//! [`CpuOptions`](crate::CpuOptions) and [`CudaOptions`](crate::CudaOptions).

use std::{any::Any, fmt};

use crate::Error;

mod arenas;
mod conditional;
mod constant;
#[allow(unsafe_code)] // Addresses become slices, and `gemm` takes pointers: each block has its proof.
pub mod cpu;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)] // The driver is called here: each block has its proof.
pub mod cuda;
mod delegate;
mod diagnostics;
mod elements;
pub mod faulty;
mod graphs;
mod host_log;
mod host_memory;
mod operation;
pub(crate) mod shapes;
mod stream;

pub use arenas::{Arena, Arenas};
pub use conditional::Conditional;
pub use constant::Constant;
pub use diagnostics::Diagnostics;
pub(crate) use elements::{ElementSource, ElementStep, JoinsElements};
pub use graphs::{CapturedGraph, GraphExec, Graphs, Signature, Update};
pub use host_log::HostLog;
pub use host_memory::{HostCopy, HostMemory, HostSource};
pub(crate) use operation::Operation;
pub use operation::{Launch, Op};
pub use stream::{DeviceCopy, HostUpload, Mark, PendingBytes, Stream};

pub use crate::__delegate as delegate;

pub use crate::value::{
    memory::{Memory, SharedMemory},
    view::View,
};

/// The interface of a device. One value is one device with one stream.
///
/// Calls come from one thread at a time. Everything except [`Arenas::alloc`], [`Arenas::host_memory`], [`Stream::read`] and
/// [`Stream::synchronize`] is asynchronous; all work runs in the order of the calls, except for branches of a
/// [fork](Graphs::fork). No method has a default body, so every device must implement all of them; a backend
/// that wraps another one delegates calls with `delegate!`.
pub trait Backend: Stream + Arenas + Graphs + Diagnostics + Send + fmt::Debug {
    /// Downcasting, for features of a single backend; a wrapper returns the backend that it wraps.
    fn as_any(&self) -> &dyn Any;
}

/// Returns the error for a call that is not allowed during a capture.
pub(crate) fn refused_in_capture(call: &'static str) -> Error {
    Error::RefusedInCapture { call }
}

/// Returns the error for host memory that is to be written while it is the source of a copy that has not begun.
pub(crate) fn lent_to_a_call() -> Error {
    Error::Argument {
        op: "PinnedBuffer",
        reason: "it is an input of a call that has not begun; write to it before or after the call".into(),
    }
}
