//! What memory a runtime has and needs: statistics, upkeep, and estimates ahead of a capture.

use crate::{Result, Runtime, core::Measure};

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
    pub node: usize,
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
    pub shares_with: Option<usize>,
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

/// The memory of a runtime; see [`Runtime::memory`].
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
    pub spare_bytes: u64,
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

impl Runtime {
    /// Bytes of everything that the runtime has, by arena, function and recording.
    ///
    /// The recordings share the pool: it is as large as the largest path needs, whatever their number
    /// ([`MemoryStats::pool_recorded_bytes`]); the sum over them is reported beside it.
    pub fn memory(&self) -> MemoryStats {
        self.core.borrow().memory()
    }

    /// Makes the first `bytes` bytes of an arena usable now, in one piece, so that nothing has to be added
    /// while serving. Memory that is there already counts.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the arena is as before.
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn prime(&mut self, arena: MemoryArena, bytes: u64) -> Result<()> {
        let core = self.core.get_mut();
        core.refuse_in_estimate("prime")?;
        core.prime(arena, bytes)
    }

    /// Gives back the memory of the arenas that no recording needs, such as what only warm-up used, that of
    /// dropped kept values, and that of [`MemoryStats::eager_graphs`]. Returns the number of bytes that the arenas gave back.
    ///
    /// Recordings stay valid: what they use in the pool and the results arena is kept. Memory goes in the
    /// pieces in which it came, so a primed piece stays as long as a part of it is needed. Waits for the work
    /// of this runtime, not for the device.
    ///
    /// # Errors
    /// What the device says; memory that was not given back stays usable.
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn trim(&mut self) -> Result<u64> {
        self.core.get_mut().refuse_in_estimate("trim")?;
        // What was dropped has recordings that need nothing any more.
        self.step()?;
        self.core.get_mut().trim()
    }

    /// Forgets every recording and everything learnt for them, and gives all memory of the arenas back.
    /// Parameters, state, graph objects and kept values stay as they are; counters run on. Returns the number
    /// of bytes that the arenas gave back.
    ///
    /// # Errors
    /// As [`trim`](Self::trim); the recordings are gone even so, but for
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn reset(&mut self) -> Result<u64> {
        self.core.get_mut().refuse_in_estimate("reset")?;
        self.step()?;
        let core = self.core.get_mut();
        core.forget_recordings();
        let trimmed = core.trim();
        self.tell_hooks();
        trimmed
    }

    /// What memory `plan` will take: it calls `capture_all` of all graphs that will be captured.
    ///
    /// Each `capture_all` captures its two largest combinations of bucket sizes alone, in a state that is
    /// thrown away, and the rest is extrapolated: the arenas are shared, so they need what the largest needs,
    /// and each further recording is expected to take an executable like those of the second. Afterwards all
    /// is as before, also when a capture fails or panics: recordings, memory, counters, state. Therefore the plan
    /// may not call [`prime`](Self::prime), [`trim`](Self::trim), [`reset`](Self::reset),
    /// [`measure_memory`](Self::measure_memory), or this again.
    ///
    /// # Errors
    /// What `plan` says; [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn estimate_memory(&mut self, plan: impl FnOnce(&mut Self) -> Result<()>) -> Result<CaptureMemory> {
        self.core.get_mut().refuse_in_estimate("estimate_memory")?;
        self.core.get_mut().end_saving_later();
        self.start_step(false)?;
        let dry = Dry::begin(self);
        plan(dry.0)?;
        let core = dry.0.core.get_mut();
        let expected = core.estimated();
        drop(dry);
        self.core.get_mut().expected = Some(expected);
        Ok(expected)
    }

    /// Runs `plan` for real, and says what memory it took beyond what was there: to compare with
    /// [`estimate_memory`](Self::estimate_memory). The difference is told by
    /// [`Event::CaptureMeasured`](crate::Event::CaptureMeasured).
    ///
    /// # Errors
    /// What `plan` says; [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn measure_memory(&mut self, plan: impl FnOnce(&mut Self) -> Result<()>) -> Result<CaptureMemory> {
        self.core.get_mut().refuse_in_estimate("measure_memory")?;
        self.step()?;
        let measuring = Measuring::begin(self);
        plan(measuring.rt)?;
        let took = measuring.rt.core.get_mut().taken(&measuring.before);
        drop(measuring);
        let core = self.core.get_mut();
        let expected = core.expected.take();
        core.log.measured(expected.map(|e| e.total_bytes()), took.total_bytes());
        Ok(took)
    }
}

/// Throws away what was captured from its making on, also by a panic.
struct Dry<'r>(&'r mut Runtime);

impl<'r> Dry<'r> {
    fn begin(rt: &'r mut Runtime) -> Self {
        rt.core.get_mut().begin_dry();
        Self(rt)
    }
}

impl Drop for Dry<'_> {
    fn drop(&mut self) {
        self.0.graphs.set(false);
        let core = self.0.core.get_mut();
        core.end_dry();
        // A hook that the plan added hears of the recordings that were set aside, too.
        core.tree.watch(self.0.hooks.any());
    }
}

/// Counts high-water marks anew from its making on; afterwards they are those of all time, also by a panic.
struct Measuring<'r> {
    rt: &'r mut Runtime,
    before: Measure,
}

impl<'r> Measuring<'r> {
    fn begin(rt: &'r mut Runtime) -> Self {
        let before = rt.core.get_mut().begin_measuring();
        Self { rt, before }
    }
}

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        self.rt.core.get_mut().end_measuring(&self.before);
    }
}
