//! Arenas: addresses are reserved once, and memory is mapped as it is needed.

use std::sync::{Arc, Mutex, PoisonError};

use super::{driver::VirtualRange, shared::Shared};
use crate::{Error, Result, backend::Memory};

/// The size of an arena on devices without virtual memory, where it is a single allocation.
const PLAIN_BYTES: u64 = 1 << 30;

/// An arena's memory.
#[derive(Debug)]
pub(super) struct ArenaMemory {
    base: u64,
    bytes: u64,
    /// `None` where it is one plain allocation.
    range: Option<Mutex<VirtualRange>>,
    shared: Arc<Shared>,
}

impl ArenaMemory {
    /// Reserves as many addresses as the device has memory, or `at_least`.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn reserve(shared: &Arc<Shared>, at_least: u64) -> Result<Self> {
        let (_, total) = shared.context.memory()?;
        if !shared.context.props().virtual_memory {
            let bytes = at_least.max(PLAIN_BYTES);
            tracing::warn!(
                bytes,
                "this driver cannot map memory as an arena grows; each arena is one allocation that cannot grow"
            );
            let base = shared.pool.alloc(&shared.stream, bytes, "an arena")?;
            return Ok(Self { base, bytes, range: None, shared: Arc::clone(shared) });
        }
        let range = VirtualRange::reserve(&shared.context, total.max(at_least))?;
        Ok(Self {
            base: range.base(),
            bytes: range.reserved(),
            range: Some(Mutex::new(range)),
            shared: Arc::clone(shared),
        })
    }

    /// Makes the first `bytes` usable; returns how many were before and are now.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn commit(&self, bytes: u64) -> Result<(u64, u64)> {
        match &self.range {
            Some(range) => range.lock().unwrap_or_else(PoisonError::into_inner).map(bytes),
            None if bytes <= self.bytes => Ok((self.bytes, self.bytes)),
            None => Err(Error::OutOfMemory {
                device: self.shared.context.name().to_owned(),
                bytes,
                what: "an arena, which cannot grow with this driver",
            }),
        }
    }

    /// Releases the pieces after the first `bytes` bytes; returns how many bytes remain usable. The caller
    /// has waited for the work that uses them.
    ///
    /// # Errors
    /// Returns errors of the driver; pieces that were not released remain usable.
    pub(super) fn uncommit(&self, bytes: u64) -> Result<u64> {
        match &self.range {
            Some(range) => range.lock().unwrap_or_else(PoisonError::into_inner).unmap(bytes),
            // One allocation, which cannot shrink.
            None => Ok(self.bytes),
        }
    }
}

impl ArenaMemory {
    /// Bytes of a page; 0 where memory cannot be mapped.
    pub(super) fn page(&self) -> u64 {
        match &self.range {
            Some(range) => range.lock().unwrap_or_else(PoisonError::into_inner).page(),
            None => 0,
        }
    }

    /// Makes the pages of these bytes usable, and no others; returns the addresses of fresh ones.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn commit_block(&self, addr: u64, bytes: u64) -> Result<Vec<u64>> {
        match &self.range {
            Some(range) => {
                let fresh = range.lock().unwrap_or_else(PoisonError::into_inner).map_pages(addr, bytes)?;
                Ok(fresh.iter().map(|offset| self.base + offset).collect())
            }
            None => self.commit(addr + bytes - self.base).map(|_| Vec::new()),
        }
    }
}

impl Memory for ArenaMemory {
    fn addr(&self) -> u64 {
        self.base
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for ArenaMemory {
    fn drop(&mut self) {
        if self.shared.context.is_lost() {
            return;
        }
        // Memory is unmapped immediately, so no work may be using it. A failure here means that the context
        // is lost, in which no work runs.
        let _ = self.shared.stream.synchronize();
        if self.range.is_none() {
            let _ = self.shared.pool.free(&self.shared.stream, self.base);
        }
    }
}
