//! Host memory that plays device memory.

use std::{
    fmt,
    sync::{Arc, mpsc::Sender},
};

use memmap2::{MmapMut, MmapOptions};

use super::{access::Ranges, stream::Command};
use crate::{Error, Result, backend::Memory};

/// A mapping, unmapped behind everything that the stream was told before.
pub(super) struct CpuMemory {
    map: Option<Arc<Mapping>>,
    addr: u64,
    len: u64,
    queue: Sender<Command>,
}

/// The pages themselves.
pub(super) struct Mapping {
    map: MmapMut,
    ranges: Ranges,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.ranges.remove(self.map.as_ptr().addr() as u64);
    }
}

impl CpuMemory {
    /// Zeroed pages; `lazy` ones take memory when they are first touched.
    pub(super) fn map(bytes: u64, lazy: bool, what: &'static str, ranges: &Ranges, queue: Sender<Command>) -> Result<Self> {
        let failed = || Error::OutOfMemory { device: "cpu".into(), bytes, what };
        let len = usize::try_from(bytes.max(1)).map_err(|_| failed())?;
        let mut options = MmapOptions::new();
        options.len(len);
        if lazy {
            options.no_reserve_swap();
        }
        let map = options.map_anon().map_err(|_| failed())?;
        let addr = map.as_ptr().expose_provenance() as u64;
        ranges.add(addr, addr + bytes);
        let map = Arc::new(Mapping { map, ranges: ranges.clone() });
        Ok(Self { map: Some(map), addr, len: bytes, queue })
    }
}

impl Memory for CpuMemory {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        if let Some(map) = self.map.take() {
            // Queued launches may still name these addresses. Without a worker nobody does, and the
            // mapping goes with the command that could not be sent.
            let _ = self.queue.send(Command::Release(map));
        }
    }
}

impl fmt::Debug for CpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMemory({:#x}, {} bytes)", self.addr, self.len)
    }
}
