//! Handles of a stream's memory, which decide when that memory is freed.

use std::{fmt, sync::Arc};

use super::stream::Shared;
use crate::backend::Memory;

/// An address and a length in a [`Block`](super::memory::Block). The worker frees the block when it has passed the
/// last command that was queued before the handle was dropped, whichever thread dropped it.
pub(super) struct Handle {
    /// Of the block, which goes with the handle.
    block: u64,
    addr: u64,
    len: u64,
    stream: Arc<Shared>,
}

impl Handle {
    /// A handle of `len` bytes at `addr`; the block there goes when the handle goes.
    pub(super) fn new(addr: u64, len: u64, stream: Arc<Shared>) -> Self {
        Self { block: addr, addr, len, stream }
    }

    /// A handle of `len` bytes at `addr`, a part of the block at `block`, of which there may be other handles.
    pub(super) fn part(block: u64, addr: u64, len: u64, stream: Arc<Shared>) -> Self {
        Self { block, addr, len, stream }
    }
}

impl Memory for Handle {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stream.retire(self.block);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.len, self.addr)
    }
}
