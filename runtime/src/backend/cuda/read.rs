//! Pending host reads.

use std::sync::Arc;

use super::{
    driver::{Event, Pinned},
    fault::Faults,
    shared::Shared,
};
use crate::{Result, backend::PendingBytes};

/// Bytes being copied to pinned memory.
pub(super) struct CudaRead {
    shared: Arc<Shared>,
    faults: Arc<Faults>,
    /// Taken when it ends.
    under_way: Option<(Pinned, Event)>,
    bytes: usize,
}

impl CudaRead {
    /// Starts it.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn start(shared: &Arc<Shared>, faults: &Arc<Faults>, addr: u64, bytes: u64) -> Result<Self> {
        let bytes = bytes as usize;
        let (mut pinned, event) = shared.take_pinned(bytes)?;
        if bytes > 0 {
            pinned.copy_from(&shared.stream, addr, bytes)?;
        }
        let under_way = Some(shared.mark_use(pinned, event)?);
        Ok(Self { shared: Arc::clone(shared), faults: Arc::clone(faults), under_way, bytes })
    }
}

impl PendingBytes for CudaRead {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        let faults = Arc::clone(&self.faults);
        let data = self.wait_without_faults()?;
        faults.check()?;
        Ok(data)
    }

    fn wait_without_faults(mut self: Box<Self>) -> Result<Vec<u8>> {
        let Some((pinned, event)) = self.under_way.take() else {
            // `wait` takes the read: it is called once.
            return Ok(Vec::new());
        };
        if let Err(error) = self.shared.wait(&event) {
            self.shared.put_pinned(pinned, event);
            return Err(error);
        }
        let data = pinned.read(self.bytes);
        self.shared.put_pinned(pinned, event);
        Ok(data)
    }

    fn is_ready(&self) -> bool {
        // An error is an answer too.
        self.under_way.as_ref().is_none_or(|(_, event)| event.is_done().unwrap_or(true))
    }
}

impl Drop for CudaRead {
    fn drop(&mut self) {
        if let Some((pinned, event)) = self.under_way.take() {
            // The copy may still run: the event keeps the memory from being used before its end.
            self.shared.put_pinned(pinned, event);
        }
    }
}
