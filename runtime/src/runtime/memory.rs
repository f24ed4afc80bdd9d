//! The memory of a runtime: reports, preallocation, trimming, and estimates ahead of a capture.

use crate::{
    CaptureMemory, MemoryArena, MemoryStats, Result, Runtime,
    core::{Measure, report},
};

impl Runtime {
    /// Bytes of everything that the runtime has, by arena, function and recording.
    ///
    /// The recordings share the pool: it is as large as the largest path needs, whatever their number
    /// ([`MemoryStats::pool_recorded_bytes`]); the sum over them is reported beside it.
    pub fn memory(&self) -> MemoryStats {
        let core = self.core.borrow();
        report::memory_stats(&core.memory, &core.stream, &core.tree)
    }

    /// Makes the first `bytes` bytes of an arena usable now, in one piece, so that nothing has to be added
    /// while serving. Memory that is there already counts.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the arena is as before.
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn prime(&mut self, arena: MemoryArena, bytes: u64) -> Result<()> {
        let core = self.core.get_mut();
        core.estimate.refuse("prime")?;
        core.memory.preallocate(core.stream.backend_mut(), arena, bytes)
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
        self.core.get_mut().estimate.refuse("trim")?;
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
        self.core.get_mut().estimate.refuse("reset")?;
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
        self.core.get_mut().estimate.refuse("estimate_memory")?;
        self.core.get_mut().launcher().restore_snapshot_later();
        self.start_step(false)?;
        let dry = Dry::begin(self);
        plan(dry.0)?;
        let core = dry.0.core.get_mut();
        let expected = core.estimate.estimated(&core.memory, &core.tree);
        drop(dry);
        self.core.get_mut().estimate.expect(expected);
        Ok(expected)
    }

    /// Runs `plan` for real, and says what memory it took beyond what was there: to compare with
    /// [`estimate_memory`](Self::estimate_memory). The difference is told by
    /// [`Event::CaptureMeasured`](crate::Event::CaptureMeasured).
    ///
    /// # Errors
    /// What `plan` says; [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn measure_memory(&mut self, plan: impl FnOnce(&mut Self) -> Result<()>) -> Result<CaptureMemory> {
        self.core.get_mut().estimate.refuse("measure_memory")?;
        self.step()?;
        let measuring = Measuring::begin(self);
        plan(measuring.rt)?;
        let core = measuring.rt.core.get_mut();
        let took = measuring.before.taken(&core.memory, &core.tree);
        drop(measuring);
        let core = self.core.get_mut();
        let expected = core.estimate.take_expected();
        core.log.measured(expected.map(|e| e.total_bytes()), took.total_bytes());
        Ok(took)
    }
}

/// Throws away what was captured from its making on, also by a panic.
struct Dry<'r>(&'r mut Runtime);

impl<'r> Dry<'r> {
    fn begin(rt: &'r mut Runtime) -> Self {
        rt.core.get_mut().begin_dry_run();
        Self(rt)
    }
}

impl Drop for Dry<'_> {
    fn drop(&mut self) {
        self.0.graphs.set(false);
        let core = self.0.core.get_mut();
        core.end_dry_run();
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
        let core = rt.core.get_mut();
        let before = Measure::begin(&mut core.memory, &core.tree);
        Self { rt, before }
    }
}

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        self.before.end(&mut self.rt.core.get_mut().memory);
    }
}
