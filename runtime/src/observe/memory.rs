//! What memory a runtime has and needs.

use crate::RecordingId;

/// An arena of a runtime: addresses that stay, memory behind them as it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryArena {
    /// What segments make. All recordings share it, and it is as large as the largest path needs.
    Pool,
    /// What leaves calls.
    Results,
    /// What is made outside segments.
    Eager,
}

/// Bytes of one arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaUsage {
    /// Memory that exists.
    pub committed_bytes: u64,
    /// Of it, what is alive now.
    pub live_bytes: u64,
    /// From the arena's start to the highest byte that was ever alive.
    pub peak_bytes: u64,
}

/// One recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeUsage {
    /// Its number, as in events.
    pub recording: RecordingId,
    /// The segment.
    pub segment: String,
    /// The function in whose call it was recorded.
    pub function: &'static str,
    /// Bytes of the pool that its own tensors and scratch memory need at their most: what it would take alone.
    pub pool_peak_bytes: u64,
    /// Bytes from the pool's start to the highest byte that was alive while it was recorded: what must be
    /// there when it is replayed.
    pub pool_extent_bytes: u64,
    /// Bytes of its outputs in the results arena.
    pub result_bytes: u64,
    /// Bytes of its executable: on a GPU, by how much free memory of the whole device went down when it was made, since
    /// the driver tells no more. What other processes and threads took or gave back at that moment is in it. 0 where it
    /// shares that of another.
    pub executable_bytes: u64,
    /// The first of the recordings whose executable it shares; `None` where it is the first, or alone.
    pub shares_with: Option<RecordingId>,
    /// Operations, copies and fills in its executable; 0 where it launches nothing.
    pub executable_nodes: usize,
}

/// All recordings of one graph object, and its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionUsage {
    /// The function.
    pub function: &'static str,
    /// Its recordings.
    pub nodes: usize,
    /// The largest [`NodeUsage::pool_extent_bytes`]: what the function needs of the pool.
    pub pool_bytes: u64,
    /// The sum of [`NodeUsage::pool_peak_bytes`]: what it would need if its recordings shared nothing.
    pub pool_sum_bytes: u64,
    /// Sum of the executables.
    pub executable_bytes: u64,
    /// Static inputs and the host block.
    pub static_bytes: u64,
}

/// What the driver says of the whole device, all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceUsage {
    /// Bytes that nobody has.
    pub free_bytes: u64,
    /// Bytes of the device.
    pub total_bytes: u64,
}

/// The memory of a runtime; see [`Runtime::memory`](crate::Runtime::memory).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The device, where its driver counts.
    pub device: Option<DeviceUsage>,
    /// The pool.
    pub pool: ArenaUsage,
    /// The results arena.
    pub results: ArenaUsage,
    /// The eager arena.
    pub eager: ArenaUsage,
    /// Bytes of the pool that eager code borrowed at most ([`Step::scratch`](crate::Step::scratch)).
    pub scratch_peak_bytes: u64,
    /// What the recordings need of the pool, which they share: as much as the largest of them.
    pub pool_recorded_bytes: u64,
    /// What they would need if each had memory of its own.
    pub pool_sum_bytes: u64,
    /// Parameters and state.
    pub owned_bytes: u64,
    /// Static inputs and host blocks of graph objects.
    pub static_bytes: u64,
    /// [Kept](crate::Kept) values.
    pub kept_bytes: u64,
    /// Dropped ones that wait to be used again.
    pub cached_bytes: u64,
    /// How many executables there are, those included that wait for a new recording of their place.
    pub executables: usize,
    /// Their bytes.
    pub executable_bytes: u64,
    /// What they would take besides if each recording had its own.
    pub shared_bytes: u64,
    /// On a GPU: how many kernels of eager operations have a graph of their own, which between two other graphs
    /// takes the driver half the time to launch. At most 64.
    pub eager_graphs: usize,
    /// Their bytes, by how much free memory of the whole device went down when they were made, as
    /// [`NodeUsage::executable_bytes`].
    pub eager_graph_bytes: u64,
    /// Every graph object with memory, in the order of their making.
    pub functions: Vec<FunctionUsage>,
    /// Every recording, in the order of their making.
    pub nodes: Vec<NodeUsage>,
}

/// What memory a plan of captures takes, or is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureMemory {
    /// Recordings.
    pub nodes: u64,
    /// Bytes of the pool, warm-up included.
    pub pool_bytes: u64,
    /// Bytes of the results arena.
    pub result_bytes: u64,
    /// Bytes of the eager arena.
    pub eager_bytes: u64,
    /// Bytes of static inputs.
    pub static_bytes: u64,
    /// Bytes of executables.
    pub executable_bytes: u64,
}

impl CaptureMemory {
    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.pool_bytes + self.result_bytes + self.eager_bytes + self.static_bytes + self.executable_bytes
    }

    /// By how much this estimate is above what the plan `took`, as a fraction of that; below zero, it was too
    /// low. 0 where nothing was taken.
    pub fn error(&self, took: &Self) -> f64 {
        let took = took.total_bytes() as f64;
        if took == 0.0 { 0.0 } else { (self.total_bytes() as f64 - took) / took }
    }
}
