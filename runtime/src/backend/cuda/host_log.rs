//! Pinned memory to which kernels append while the host looks at it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64},
    },
};

use super::{driver::Pinned, shared::Shared};
use crate::{Result, backend::HostLog};

/// The bytes of the header.
const HEADER: usize = size_of::<AtomicU64>();

pub(super) struct CudaHostLog {
    /// Taken when it is dropped.
    pinned: Option<Pinned>,
    words: usize,
    shared: Arc<Shared>,
}

impl CudaHostLog {
    /// So many words, all zero.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn new(shared: &Arc<Shared>, words: usize) -> Result<Self> {
        let bytes = words.saturating_mul(size_of::<AtomicU32>()).saturating_add(HEADER);
        let pinned = Some(Pinned::new(&shared.context, bytes)?);
        Ok(Self { pinned, words, shared: Arc::clone(shared) })
    }

    fn pinned(&self) -> &Pinned {
        match &self.pinned {
            Some(pinned) => pinned,
            None => unreachable!("it is taken when this is dropped"),
        }
    }
}

impl HostLog for CudaHostLog {
    fn header(&self) -> &AtomicU64 {
        // SAFETY: the first bytes of the allocation, which is aligned to pages and lives as long as `self`. The host uses
        // them only through this, and kernels only by stores of 8 bytes: every access is atomic.
        unsafe { &*self.pinned().start().cast() }
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the rest of the allocation has that many words, behind a header of twice their alignment; as in `header`,
        // with stores of 4 bytes.
        unsafe { std::slice::from_raw_parts(self.pinned().start().wrapping_add(HEADER).cast(), self.words) }
    }

    fn device_addr(&self) -> u64 {
        self.pinned().device_addr()
    }
}

impl Drop for CudaHostLog {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            // After the kernels on the stream that may write it; and not in a capture, as that may wait for the device.
            self.shared.retire_owner(Box::new(pinned));
        }
    }
}

impl fmt::Debug for CudaHostLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaHostLog").field("words", &self.words).finish_non_exhaustive()
    }
}
