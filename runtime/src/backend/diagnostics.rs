//! What a device reports of itself.

use crate::Result;

/// A device's name, counters and sizes.
pub trait Diagnostics {
    /// `"cpu"`, `"cuda:0"`, …
    fn name(&self) -> String;

    /// Free and total bytes of the device; `None` where nobody counts them.
    ///
    /// # Errors
    /// What the device says.
    fn device_memory(&self) -> Result<Option<(u64, u64)>>;

    /// How many graphs of one kernel eager operations are launched as, and their bytes.
    fn eager_graphs(&self) -> (usize, u64);

    /// How often the host has waited for the device because all memory for bytes on their way there was in use.
    fn staging_waits(&self) -> u64;

    /// Whether captures from now on keep what [`GraphExec::topology`](super::GraphExec::topology) gives, where that costs time or
    /// memory.
    fn keep_topology(&mut self, on: bool);
}
