//! Everything is recorded before serving: one call for every combination of bucket sizes, and for every kind of
//! batch.

use std::sync::Arc;

use super::{
    GraphObject, Synthetic,
    jobs::{Job, MANY},
};
use crate::{Error, Result, Runtime, Step, base::mode::Mode, value::owned::Owned};

/// How often a call is repeated until nothing new is recorded. Three passes warm up, record, and record
/// again where results were placed better meanwhile; the fourth finds nothing. A chain of such moves
/// takes more, a body that is never the same takes them all.
const PASSES: usize = 8;

/// Saves state from its making on, and puts it back when it goes, also by a panic.
struct Saving<'r>(&'r mut Runtime);

impl<'r> Saving<'r> {
    fn begin(rt: &'r mut Runtime) -> Self {
        rt.core.get_mut().recorder.begin_snapshot();
        Self(rt)
    }

    fn end(self) -> Result<()> {
        self.0.core.get_mut().launcher().restore_snapshot()
    }
}

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        let core = self.0.core.get_mut();
        core.log.watch(false);
        core.launcher().restore_snapshot_later();
        self.0.batches.get_mut().capture(None);
    }
}

/// The static buffers that were made since its making: the function gives them up at its end, also by a panic.
struct NewBuffers<'f> {
    function: &'f GraphObject,
    before: Vec<usize>,
}

impl NewBuffers<'_> {
    fn take(&self) -> Vec<Arc<Owned>> {
        self.function.take_statics_since(&self.before)
    }
}

impl Drop for NewBuffers<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl GraphObject {
    /// Runs `call` for every combination of bucket sizes, largest first, until nothing new is recorded. Where
    /// uniform decodes have graphs of their own, the segments of all sizes come first, then those. State that the calls write is put back at the end, also when they fail or panic.
    ///
    /// A call that still records something new after eight passes is told by
    /// [`Event::NotConverged`](crate::Event::NotConverged).
    ///
    /// # Errors
    /// [`Error::Config`] when the function has inputs whose size is not known from buckets;
    /// [`Error::NotConverged`] under `deny_fallback`; what the calls say.
    pub fn capture_all(
        &self,
        rt: &mut Runtime,
        mut call: impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
        mut progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        if self.dispatcher.mode() == Mode::None {
            return Ok(());
        }
        let jobs = self.jobs()?;
        let (total, symbols) = (jobs.len(), self.spec.symbols);
        if total > MANY {
            rt.core.get_mut().log.many_captures(self.spec.name, total);
        }
        if rt.core.get_mut().estimate.is_dry() {
            return jobs
                .chunk_by(|a, b| a.mode == b.mode)
                .try_for_each(|kind| self.sample(rt, kind, &mut call));
        }
        let saving = Saving::begin(rt);
        for (done, job) in jobs.iter().enumerate() {
            progress(CaptureProgress { done, total, sizes: &job.sizes, symbols, mode: job.mode });
            self.settle(saving.0, job, &mut call)?;
        }
        saving.end()?;
        progress(CaptureProgress { done: total, total, sizes: &[], symbols, mode: self.dispatcher.mode() });
        rt.synchronize()
    }

    /// As [`capture_all`](Self::capture_all), in a state that is thrown away: the two largest combinations
    /// of one kind alone, and what the others are expected to take.
    fn sample(
        &self,
        rt: &mut Runtime,
        jobs: &[Job],
        call: &mut impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
    ) -> Result<()> {
        let buffers = NewBuffers { function: self, before: self.statics_now() };
        let mut counts = vec![rt.core.get_mut().tree.recorded()];
        let saving = Saving::begin(rt);
        let sampled = jobs.iter().take(2).try_for_each(|job| {
            self.settle(saving.0, job, &mut *call)?;
            counts.push(saving.0.core.get_mut().tree.recorded());
            Ok(())
        });
        let saved = saving.end();
        let core = rt.core.get_mut();
        // What was recorded with them counts to the end of the plan.
        core.estimate.hold_to_the_end(buffers.take());
        sampled.and(saved)?;
        let left = jobs.len().saturating_sub(2) as u64;
        let (mut nodes, mut bytes) = (0, 0);
        if let [_, first, second] = counts[..] {
            // The largest may have had to load or grow what all share.
            nodes = left * second.0.saturating_sub(first.0);
            bytes = left * second.1.saturating_sub(first.1);
        }
        core.estimate.expect_more(nodes, bytes);
        Ok(())
    }

    /// Repeats a call until a pass records nothing new.
    fn settle(
        &self,
        rt: &mut Runtime,
        job: &Job,
        mut call: impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
    ) -> Result<()> {
        let synthetic = Synthetic { function: self, sizes: &job.sizes };
        rt.batches.get_mut().capture(job.said);
        let mut fresh = Vec::new();
        for _pass in 0..PASSES {
            rt.core.get_mut().log.watch(true);
            rt.saving_step().and_then(|step| call(&step, &synthetic))?;
            fresh = rt.core.get_mut().log.watch(false);
            if fresh.is_empty() {
                return Ok(());
            }
        }
        let function = self.spec.name;
        let segments: Vec<String> = fresh.iter().map(ToString::to_string).collect();
        let sizes = job.sizes.clone();
        if self.options.deny_fallback {
            return Err(Error::NotConverged { function, sizes, segments });
        }
        rt.core.get_mut().log.not_converged(function, sizes, segments);
        Ok(())
    }
}

/// How far `capture_all` is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CaptureProgress<'a> {
    /// Combinations of sizes that are captured.
    pub done: usize,
    /// All of them.
    pub total: usize,
    /// The sizes now at work, one per symbol; empty at the end.
    pub sizes: &'a [usize],
    /// Names of the symbols.
    pub symbols: &'static [&'static str],
    /// How much of a call is recorded now: `Piecewise` or `Full`; at the end, the mode of the graph.
    pub mode: Mode,
}
