//! A device's reports about itself.

use crate::{CacheStats, Result};

/// A device's name, counters and sizes.
pub trait Diagnostics {
    /// Returns the name of the device: `"cpu"`, `"cuda:0"`, …
    fn name(&self) -> String;

    /// Returns the free and total bytes of the device; `None` if they are not counted.
    ///
    /// # Errors
    /// Returns errors of the device.
    fn device_memory(&self) -> Result<Option<(u64, u64)>>;

    /// Returns the number of single-kernel graphs as which eager operations are launched, and their bytes.
    fn eager_graphs(&self) -> (usize, u64);

    /// Returns how often the host has waited for the device because all staging memory was in use.
    fn staging_waits(&self) -> u64;

    /// Returns what is kept of compilations and measurements.
    fn caches(&self) -> CacheStats;

    /// Forgets the algorithms that were chosen for operations, unless a recording needs them; not during a capture.
    ///
    /// # Errors
    /// Returns [`Error::RefusedInCapture`](crate::Error::RefusedInCapture), and errors of the device.
    fn clear_caches(&mut self) -> Result<()>;

    /// Removes what is kept on disk for later processes, and returns the number of bytes.
    ///
    /// # Errors
    /// See [`clear_caches`](Self::clear_caches).
    fn clear_disk_cache(&mut self) -> Result<u64>;

    /// Sets whether captures from now on keep the data that
    /// [`GraphExec::topology`](super::GraphExec::topology) returns, where that costs time or memory.
    fn keep_topology(&mut self, on: bool);
}
