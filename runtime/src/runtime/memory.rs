//! The memory of a runtime: reports, preallocation, trimming, and estimates before a capture.

use super::core::{Measure, report};
use crate::{CaptureMemory, MemoryArena, MemoryStats, Result, Runtime, observe::occurrence::Occurrence};

impl Runtime {
    /// Returns the bytes of everything that the runtime has allocated, by arena, function and recording.
    ///
    /// All recordings share the pool: it is as large as the largest path needs, however many there are
    /// ([`MemoryStats::pool_recorded_bytes`]); the sum over all recordings is reported separately.
    pub fn memory(&self) -> MemoryStats {
        let core = self.core.borrow();
        report::memory_stats(&core.memory, &core.stream, &core.tree)
    }

    /// Commits the first `bytes` bytes of an arena now, in one piece, so that nothing has to be committed
    /// while serving. Memory that is already committed counts.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) (the arena is unchanged) or
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn preallocate(&mut self, arena: MemoryArena, bytes: u64) -> Result<()> {
        let core = self.core.get_mut();
        core.estimate.refuse("preallocate")?;
        core.memory.preallocate(core.stream.backend_mut(), arena, bytes)
    }

    /// Releases the memory of the arenas that no recording needs, such as memory that only warm-up used,
    /// memory of dropped kept values, and that of [`MemoryStats::eager_graphs`]. Returns the number of bytes
    /// that the arenas released.
    ///
    /// Recordings remain valid: the memory that they use in the pool and the results arena is retained.
    /// Memory is released in the pieces in which it was committed, so a preallocated piece is retained while any
    /// part of it is needed. Waits for the work of this runtime, not for the whole device.
    ///
    /// # Errors
    /// Returns the errors of the device; memory that was not released remains usable. Returns
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate) in the plan of an estimate.
    pub fn trim(&mut self) -> Result<u64> {
        self.core.get_mut().estimate.refuse("trim")?;
        // The recordings of dropped objects no longer need memory.
        drop(self.begin_counted_step()?);
        self.core.get_mut().trim()
    }

    /// Forgets every recording and everything learned for them, and releases all memory of the arenas.
    /// Parameters, state, graph objects and kept values are unaffected; counters continue. Returns the number
    /// of bytes that the arenas released.
    ///
    /// # Errors
    /// Like [`trim`](Self::trim); the recordings are forgotten even then, except with
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn reset(&mut self) -> Result<u64> {
        self.core.get_mut().estimate.refuse("reset")?;
        drop(self.begin_counted_step()?);
        let core = self.core.get_mut();
        core.forget_recordings();
        let trimmed = core.trim();
        self.tell_hooks();
        trimmed
    }

    /// Estimates the memory that `plan` will need; the plan calls `capture_all` of all graphs that will be
    /// captured.
    ///
    /// Each `capture_all` captures only its two largest combinations of bucket sizes, in a state that is
    /// discarded, and the rest is extrapolated: the arenas are shared, so they need as much as the largest
    /// combination, and each further recording is assumed to need an executable like that of the second.
    /// Afterwards everything is as before, even if a capture fails or panics: recordings, memory, counters,
    /// state. What the plan loads for good is loaded: parameters that outlive it are counted
    /// ([`CaptureMemory::owned_bytes`]) and stay. Therefore the plan must not call [`preallocate`](Self::preallocate), [`trim`](Self::trim),
    /// [`reset`](Self::reset), [`measure_memory`](Self::measure_memory), or this method.
    ///
    /// # Errors
    /// Returns the error of `plan`, or [`Error::InsideEstimate`](crate::Error::InsideEstimate). A `capture_all` of the plan returns what
    /// kernels of earlier calls have reported and no read has seen.
    pub fn estimate_memory(&mut self, plan: impl FnOnce(&mut Self) -> Result<()>) -> Result<CaptureMemory> {
        self.core.get_mut().estimate.refuse("estimate_memory")?;
        drop(self.begin_planned_step()?);
        let dry = Dry::begin(self);
        plan(dry.0)?;
        let core = dry.0.core.get_mut();
        let expected = core.estimate.estimated(&core.memory, &core.tree);
        drop(dry);
        self.core.get_mut().estimate.expect(expected);
        Ok(expected)
    }

    /// Runs `plan` for real and returns the memory that it needed in addition to what was in use, for
    /// comparison with [`estimate_memory`](Self::estimate_memory). The difference is reported by
    /// [`Event::CaptureMeasured`](crate::Event::CaptureMeasured).
    ///
    /// # Errors
    /// Returns the error of `plan`, or [`Error::InsideEstimate`](crate::Error::InsideEstimate).
    pub fn measure_memory(&mut self, plan: impl FnOnce(&mut Self) -> Result<()>) -> Result<CaptureMemory> {
        self.core.get_mut().estimate.refuse("measure_memory")?;
        drop(self.begin_counted_step()?);
        let measuring = Measuring::begin(self);
        plan(measuring.rt)?;
        let core = measuring.rt.core.get_mut();
        let took = measuring.before.taken(&core.memory, &core.tree);
        drop(measuring);
        let core = self.core.get_mut();
        let expected = core.estimate.take_expected();
        let (expected_bytes, bytes) = (expected.map(|e| e.total_bytes()), took.total_bytes());
        core.log.emit(Occurrence::CaptureMeasured { expected_bytes, bytes });
        Ok(took)
    }
}

/// A guard that discards everything captured since it was created, also on a panic.
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
        // A hook that the plan added also receives the events of the recordings that were set aside.
        core.log.watch_recordings(self.0.hooks.any());
    }
}

/// A guard that restarts the high-water marks when it is created; when dropped, also by a panic, it restores
/// the overall marks.
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
