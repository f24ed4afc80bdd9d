//! Memory to which the stream's thread appends while the host looks at it.

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::errors::NAME;
use crate::{Error, Result, backend::HostLog};

#[derive(Debug)]
pub(super) struct CpuHostLog {
    header: AtomicU64,
    words: Box<[AtomicU32]>,
}

impl CpuHostLog {
    /// So many words, all zero.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(super) fn new(words: usize) -> Result<Self> {
        let mut all = Vec::new();
        if all.try_reserve_exact(words).is_err() {
            let bytes = words as u64 * size_of::<u32>() as u64;
            return Err(Error::OutOfMemory { device: NAME.into(), bytes, what: "a log in host memory" });
        }
        all.resize_with(words, AtomicU32::default);
        Ok(Self { header: AtomicU64::new(0), words: all.into() })
    }
}

impl HostLog for CpuHostLog {
    fn header(&self) -> &AtomicU64 {
        &self.header
    }

    fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    fn device_addr(&self) -> u64 {
        0
    }
}
