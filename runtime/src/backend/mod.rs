//! The interface between the runtime and a device, and its implementations.
//!
//! The core above validates everything: addresses, shapes, phases, ownership. A backend carries
//! out what it is told, in stream order, and reports what only it can know.
//!
//! # Stability
//!
//! **Unstable.** This module is public for tests and for devices of one's own: any release may change it, and
//! semantic versioning does not cover it. The options of the devices are stable as
//! [`CpuOptions`](crate::CpuOptions) and [`CudaOptions`](crate::CudaOptions).

use std::{any::Any, fmt};

use crate::Error;

mod arenas;
#[allow(unsafe_code)] // Addresses become slices, and `gemm` takes pointers: each block has its proof.
pub mod cpu;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)] // The driver is called here: each block has its proof.
pub mod cuda;
mod delegate;
mod diagnostics;
pub mod faulty;
mod graphs;
mod operation;
pub(crate) mod operations;
mod stream;

pub use arenas::{Arena, Arenas};
pub use diagnostics::Diagnostics;
pub use graphs::{CapturedGraph, GraphExec, Graphs, Signature, Update};
pub(crate) use operation::Operation;
pub use operation::{Launch, Op};
pub use stream::{DeviceCopy, HostBlock, Mark, PendingBytes, Stream};

pub use crate::__delegate as delegate;

pub use crate::value::{
    memory::{Memory, SharedMemory},
    view::View,
};

/// What a device must be able to do. One value is one device with one stream.
///
/// Calls come from one thread at a time. Everything but [`Arenas::alloc`], [`Stream::read`] and
/// [`Stream::synchronize`] is asynchronous; all work runs in the order of the calls, but for branches of a
/// [fork](Graphs::fork). No method has a default body, so a device answers for each; a backend that wraps another one
/// passes calls on with `delegate!`.
pub trait Backend: Stream + Arenas + Graphs + Diagnostics + Send + fmt::Debug {
    /// For what only one backend can do; a wrapper returns what the backend within it does.
    fn as_any(&self) -> &dyn Any;
}

/// The error for a call that a capture forbids.
pub(crate) fn refused_in_capture(call: &'static str) -> Error {
    Error::RefusedInCapture { call }
}
