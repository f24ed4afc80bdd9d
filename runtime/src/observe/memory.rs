//! The memory that a runtime uses and needs.

use crate::RecordingId;

/// An arena of a runtime: fixed addresses, to which memory is mapped as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryArena {
    /// Tensors made by segments. All recordings share it, and it is as large as the largest path needs.
    Pool,
    /// Values that leave calls.
    Results,
    /// Tensors made outside segments.
    Eager,
}

/// The memory of one arena, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaUsage {
    /// The committed memory.
    pub committed_bytes: u64,
    /// The part of it that is live now.
    pub live_bytes: u64,
    /// The high-water mark, from the arena's start to the end of the highest live byte ever.
    pub peak_bytes: u64,
}

/// One recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingUsage {
    /// Its id, as in events.
    pub recording: RecordingId,
    /// The segment.
    pub segment: String,
    /// The function in whose call it was recorded.
    pub function: &'static str,
    /// The maximum number of bytes of the pool for its own tensors and workspaces: what it would need alone.
    pub pool_peak_bytes: u64,
    /// The bytes from the pool's start to the highest byte that was live while it was recorded: what must be
    /// committed when it is replayed.
    pub pool_extent_bytes: u64,
    /// The size of its outputs in the results arena.
    pub result_bytes: u64,
    /// The size of its executable. On a GPU, this is the decrease of the whole device's free memory when it
    /// was made, since the driver reports nothing more precise; it includes memory that other processes and
    /// threads allocated or freed at that moment. 0 if it shares the executable of another recording.
    pub executable_bytes: u64,
    /// The first of the recordings whose executable it shares; `None` if it is the first, or the only one.
    pub shares_with: Option<RecordingId>,
    /// The number of operations, copies and fills in its executable; 0 if it launches nothing.
    pub executable_nodes: usize,
}

/// All recordings of one graph object, and its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionUsage {
    /// The function.
    pub function: &'static str,
    /// Its recordings.
    pub recordings: usize,
    /// The largest [`RecordingUsage::pool_extent_bytes`]: the bytes of the pool that the function needs.
    pub pool_bytes: u64,
    /// The sum of [`RecordingUsage::pool_peak_bytes`]: the bytes that it would need if its recordings shared
    /// nothing.
    pub pool_sum_bytes: u64,
    /// The sum over its executables.
    pub executable_bytes: u64,
    /// Static inputs and the host block.
    pub static_bytes: u64,
}

/// The driver's report on the whole device, all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceUsage {
    /// Free bytes.
    pub free_bytes: u64,
    /// Total bytes.
    pub total_bytes: u64,
}

/// The memory of a runtime; see [`Runtime::memory`](crate::Runtime::memory).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The device, if its driver reports it.
    pub device: Option<DeviceUsage>,
    /// The pool.
    pub pool: ArenaUsage,
    /// The results arena.
    pub results: ArenaUsage,
    /// The eager arena.
    pub eager: ArenaUsage,
    /// The maximum number of bytes of the pool that eager code borrowed
    /// ([`Step::borrow_pool`](crate::Step::borrow_pool)).
    pub borrowed_peak_bytes: u64,
    /// The bytes of the pool that the recordings need, which they share: as much as the largest of them.
    pub pool_recorded_bytes: u64,
    /// The bytes that they would need if each had memory of its own.
    pub pool_sum_bytes: u64,
    /// The memory of weights that can sleep ([`Runtime::weights_can_sleep`](crate::Runtime::weights_can_sleep)).
    pub weights: ArenaUsage,
    /// The bytes of weights that sleep, and have no memory ([`Runtime::sleep`](crate::Runtime::sleep)).
    pub sleeping_bytes: u64,
    /// The bytes of host memory that hold what is in weights that sleep.
    pub saved_bytes: u64,
    /// Parameters and state, whether they sleep or not.
    pub owned_bytes: u64,
    /// Static inputs and host blocks of graph objects.
    pub static_bytes: u64,
    /// [Kept](crate::Kept) values.
    pub kept_bytes: u64,
    /// Cached memory of dropped kept values.
    pub cached_bytes: u64,
    /// The number of executables, including cached ones.
    pub executables: usize,
    /// The size of the executables.
    pub executable_bytes: u64,
    /// The bytes that they would need in addition if each recording had its own.
    pub shared_bytes: u64,
    /// On a GPU: the number of kernels of eager operations that have a graph of their own, which between two
    /// other graphs takes the driver half the time to launch. At most 64.
    pub eager_graphs: usize,
    /// The size of these graphs, measured by the free memory of the whole device like
    /// [`RecordingUsage::executable_bytes`].
    pub eager_graph_bytes: u64,
    /// Every graph object with memory, in the order of creation.
    pub functions: Vec<FunctionUsage>,
    /// Every recording, in the order of creation.
    pub recordings: Vec<RecordingUsage>,
}

/// The memory that a plan of captures takes, or is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureMemory {
    /// Recordings.
    pub recordings: u64,
    /// The size of the pool, including warm-up.
    pub pool_bytes: u64,
    /// Bytes of the results arena.
    pub result_bytes: u64,
    /// Bytes of the eager arena.
    pub eager_bytes: u64,
    /// Bytes of static inputs.
    pub static_bytes: u64,
    /// Bytes of parameters, weights in blocks and state that are there when the plan ends, in addition to those that were there before:
    /// what a plan takes that loads a model and keeps it. As in [`MemoryStats::owned_bytes`], weights that are used where their file is mapped count
    /// in full.
    pub owned_bytes: u64,
    /// Bytes of executables.
    pub executable_bytes: u64,
}

impl CaptureMemory {
    /// Returns the total.
    pub fn total_bytes(&self) -> u64 {
        let Self {
            pool_bytes, result_bytes, eager_bytes, static_bytes, owned_bytes, executable_bytes, ..
        } = self;
        pool_bytes + result_bytes + eager_bytes + static_bytes + owned_bytes + executable_bytes
    }

    /// Returns by how much this estimate exceeds what the plan `took`, as a fraction of that; negative if it
    /// was too low, and 0 if nothing was taken.
    pub fn error(&self, took: &Self) -> f64 {
        let took = took.total_bytes() as f64;
        if took == 0.0 { 0.0 } else { (self.total_bytes() as f64 - took) / took }
    }
}
