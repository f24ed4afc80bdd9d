//! Points in a stream.

use std::sync::Arc;

use super::{Context, error, stream::Stream, types::Handle};
use crate::Result;

/// A point in a stream that the host can ask for.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: an event belongs to its context, not to a thread, and `context` keeps that alive. Every call binds the context to
// the calling thread first, as CUDA Driver API, "Context Management" and "Event Management", requires.
unsafe impl Send for Event {}
// SAFETY: the methods only pass the handle to the driver, which does not restrict its use to one thread at a time: of the
// driver's objects, only graphs have to be serialised by the caller (CUDA Driver API, "Graph object thread safety").
unsafe impl Sync for Event {}

impl Event {
    /// `timed` events can be compared with [`elapsed`](Self::elapsed), and cost a little more.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn new(context: &Arc<Context>, timed: bool) -> Result<Self> {
        const DISABLE_TIMING: u32 = 2;
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: one handle is written; destroyed in `drop`.
        let code = unsafe { (context.table.event_create)(&mut raw, if timed { 0 } else { DISABLE_TIMING }) };
        context.check("cuEventCreate", code)?;
        Ok(Self { context: Arc::clone(context), raw })
    }

    /// Marks the end of the work that is currently on the stream.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        self.record_raw(stream.raw())
    }

    /// The same on a stream that the caller keeps alive.
    pub(super) fn record_raw(&self, stream: Handle) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: both handles live.
        let code = unsafe { (self.context.table.event_record)(self.raw, stream) };
        self.context.check("cuEventRecord", code)
    }

    /// Returns whether the event was reached.
    ///
    /// # Errors
    /// Returns failures on the device before it.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let _bound = self.context.bind()?;
        // SAFETY: the handle lives.
        match unsafe { (self.context.table.event_query)(self.raw) } {
            0 => Ok(true),
            error::NOT_READY => Ok(false),
            code => self.context.check("cuEventQuery", code).map(|()| false),
        }
    }

    /// Waits for the point.
    ///
    /// # Errors
    /// Returns failures on the device before it.
    pub(crate) fn wait(&self) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: the handle lives.
        let code = unsafe { (self.context.table.event_synchronize)(self.raw) };
        self.context.check("cuEventSynchronize", code)
    }

    /// Milliseconds from `self` to `end`; both timed and done.
    ///
    /// # Errors
    /// See [`Context::check`].
    pub(crate) fn elapsed(&self, end: &Self) -> Result<f32> {
        let _bound = self.context.bind()?;
        let mut ms = 0.0;
        // SAFETY: both handles live; one float is written.
        let code = unsafe { (self.context.table.event_elapsed)(&mut ms, self.raw, end.raw) };
        self.context.check("cuEventElapsedTime", code)?;
        Ok(ms)
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> Handle {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Ok(_bound) = self.context.bind() else { return };
        // SAFETY: created in `new`; the driver keeps what is still being waited for.
        unsafe { (self.context.table.event_destroy)(self.raw) };
    }
}
