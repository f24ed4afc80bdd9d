//! Steps that record nothing: with capture closed, and in the plan of an estimate.

use graphable::{Error, Result, Runtime};
use rand::{Rng, rngs::StdRng};

use super::World;

impl World {
    /// A step with capture closed: what was not recorded is refused, and nothing is recorded.
    pub(super) fn closed_step(&mut self, rt: &mut Runtime, rng: &mut StdRng) -> Result<()> {
        rt.close_capture();
        let before = rt.stats();
        let outcome = self.plain_step(rt, rng);
        rt.open_capture();
        let after = rt.stats();
        assert_eq!((after.recordings, after.warmups), (before.recordings, before.warmups));
        match outcome {
            Err(Error::CaptureClosed { .. }) => Ok(()),
            outcome => {
                self.closed += 1;
                outcome
            }
        }
    }

    /// A step in the plan of an estimate, which changes state as any does, and nothing of the runtime.
    pub(super) fn estimate(&mut self, rt: &mut Runtime, rng: &mut StdRng) -> Result<()> {
        // What was dropped goes first.
        rt.step()?;
        let (segments, before) = (self.segments, (rt.stats(), bytes(rt)));
        rt.estimate_memory(|rt| {
            for _ in 0..rng.random_range(1..8) {
                self.plain_step(rt, rng)?;
            }
            assert!(matches!(rt.trim(), Err(Error::InsideEstimate { .. })));
            assert!(matches!(rt.estimate_memory(|_| Ok(())), Err(Error::InsideEstimate { .. })));
            Ok(())
        })?;
        assert_eq!((rt.stats(), bytes(rt)), before, "an estimate");
        self.segments = segments;
        self.estimates += 1;
        Ok(())
    }
}

/// What an estimate must leave as it was, of all bytes that a runtime has.
fn bytes(rt: &Runtime) -> [u64; 7] {
    let memory = rt.memory();
    let arenas = [memory.pool, memory.results, memory.eager].map(|arena| arena.peak_bytes);
    let [pool, results, eager] = arenas;
    let (kept, cached) = (memory.kept_bytes, memory.cached_bytes);
    [pool, results, eager, kept, cached, memory.executable_bytes, memory.shared_bytes]
}
