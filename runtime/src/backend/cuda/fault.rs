//! Faults that kernels report: the first index out of range, or a loop that reached its limit.

use std::{
    panic::Location,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{driver::Pinned, kernels::FaultSink, shared::Shared};
use crate::{Error, Result};

/// Words of `Fault` in `common.cuh`.
const OP: usize = 0;
const INDEX: usize = 1;
const BOUND: usize = 2;

/// The part that reports faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reporter {
    /// An operation of that name, an index out of range.
    Operation(&'static str),
    /// A loop, that it reached its limit.
    Loop(&'static Location<'static>),
}

/// The location where kernels report faults, and the reporters.
#[derive(Debug)]
pub(super) struct Faults {
    shared: Arc<Shared>,
    sink: Mutex<Pinned>,
    addr: u64,
    claim: u64,
    reporters: Mutex<Vec<Reporter>>,
    /// Set while a fault was returned, but its location on the device is not free again.
    taken: AtomicBool,
}

impl Faults {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let sink = Pinned::new(&shared.context, 64)?;
        let claim = shared.pool.alloc(&shared.stream, 256, "the fault word")?;
        shared.stream.fill(claim, 0, 256)?;
        Ok(Self {
            shared: Arc::clone(shared),
            addr: sink.device_addr(),
            sink: Mutex::new(sink),
            claim,
            reporters: Mutex::default(),
            taken: AtomicBool::new(false),
        })
    }

    pub(super) fn sink(&self) -> FaultSink {
        FaultSink { fault: self.addr, claim: self.claim }
    }

    /// The number under which somebody reports: one more than its place in the list.
    pub(super) fn number(&self, reporter: Reporter) -> u32 {
        let mut all = self.reporters.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|known| *known == reporter).unwrap_or_else(|| {
            all.push(reporter);
            all.len() - 1
        });
        at as u32 + 1
    }

    /// Makes place for the next fault. Outside captures, by the backend.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn reset(&self) -> Result<()> {
        if self.taken.load(Ordering::Acquire) {
            self.taken.store(false, Ordering::Release);
            self.shared.stream.fill(self.claim, 0, 4)?;
        }
        Ok(())
    }

    /// Returns the first fault since the last one that was returned. The caller has waited for the work in
    /// question.
    ///
    /// # Errors
    /// Returns [`Error::IndexOutOfRange`] or [`Error::LoopLimit`].
    pub(super) fn check(&self) -> Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let op = sink.peek(OP) as u32;
        if op == 0 {
            return Ok(());
        }
        let (index, bound) = (sink.peek(INDEX), sink.peek(BOUND));
        sink.poke(OP, 0);
        // Kernels that run until the next launch find the location occupied, so their faults are lost: one is
        // enough. It is not freed here, because this may be any thread, and the stream may be in a capture.
        self.taken.store(true, Ordering::Release);
        let reporters = self.reporters.lock().unwrap_or_else(PoisonError::into_inner);
        Err(match reporters.get(op as usize - 1).copied() {
            Some(Reporter::Loop(at)) => Error::LoopLimit { at, limit: bound as u32 },
            Some(Reporter::Operation(op)) => Error::IndexOutOfRange { op, index, bound },
            None => Error::IndexOutOfRange { op: "a kernel", index, bound },
        })
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        if !self.shared.context.is_lost() {
            // After the kernels that may still report; the pinned word is freed after them as well.
            let _ = self.shared.pool.free(&self.shared.stream, self.claim);
            let _ = self.shared.stream.synchronize();
        }
    }
}
