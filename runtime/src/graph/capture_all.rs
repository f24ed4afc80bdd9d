//! Recording before serving: one call for every combination of bucket sizes, and for every kind of batch.

use std::sync::Arc;

use super::{
    GraphObject, Synthetic,
    jobs::{Job, MANY},
};
use crate::{
    Error, Result, Runtime, Step, base::mode::Mode, observe::occurrence::Occurrence, value::owned::Owned,
};

/// The maximum number of times that a call is repeated until nothing new is recorded. Three passes warm up,
/// record, and record again if the placement of results has improved; the fourth finds nothing new. A chain
/// of such moves takes more passes, and a body that never behaves the same takes all of them.
const PASSES: usize = 8;

/// A guard that saves state when it is created, and restores it when dropped, also on a panic. What kernels report in
/// between is discarded: zeros can be out of range, and never end a loop, where real inputs do.
struct Saving<'r>(&'r mut Runtime);

impl<'r> Saving<'r> {
    /// # Errors
    /// Returns what kernels of earlier calls have reported.
    fn begin(rt: &'r mut Runtime) -> Result<Self> {
        rt.synchronize()?;
        rt.core.get_mut().recorder.begin_snapshot();
        Ok(Self(rt))
    }

    fn end(self) -> Result<()> {
        let restored = self.0.core.get_mut().launcher().restore_snapshot();
        let discarded = self.discard_reports();
        restored.and(discarded)
    }

    fn discard_reports(&self) -> Result<()> {
        // A failed operation of the user may wait behind a report.
        loop {
            match self.0.synchronize() {
                Err(error) if error.is_report() => {
                    tracing::warn!(target: "graphable::capture_all", %error, "with inputs of zeros; this is not an error of your calls");
                }
                other => return other,
            }
        }
    }
}

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        let core = self.0.core.get_mut();
        core.log.watch(false);
        let is_over = !core.recorder.has_snapshot();
        core.launcher().restore_snapshot_later();
        self.0.batches.get_mut().capture(None);
        if !is_over {
            // The calls failed: their error is on its way.
            let _ = self.discard_reports();
        }
    }
}

/// The static buffers allocated since its creation; the function releases them when it is dropped, also on a
/// panic.
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

/// A call with synthetic inputs. It is a trait object, so that the code below is compiled once, and not for
/// each graph.
type Call<'c> = &'c mut dyn FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>;

/// Runs `call` for every combination of bucket sizes of `graph`, largest first, until nothing new is
/// recorded. If uniform decodes have graphs of their own, the segments of all sizes are captured first, then
/// those graphs. State that the calls write is restored at the end, even if they fail or panic.
///
/// Inputs are zeros. Where these lead to an index that is out of range, or to a loop that its limit ends, that is not an
/// error: reports of kernels are discarded. Such a loop takes all rounds that its limit allows.
///
/// A call that still records something new after eight passes is reported by
/// [`Event::NotConverged`](crate::Event::NotConverged).
///
/// # Errors
/// Returns what kernels of earlier calls have reported and no read has seen, before anything is captured;
/// [`Error::Config`] if the function has inputs whose size is not known from buckets; [`Error::NotConverged`] under `deny_fallback`; and the errors of the calls.
pub fn capture_all(
    graph: &GraphObject,
    rt: &mut Runtime,
    call: Call<'_>,
    progress: &mut dyn FnMut(CaptureProgress<'_>),
) -> Result<()> {
    if graph.dispatcher.mode() == Mode::None {
        return Ok(());
    }
    let jobs = graph.jobs()?;
    let (total, symbols) = (jobs.len(), graph.spec.symbols);
    if total > MANY {
        let function = graph.spec.name;
        rt.core.get_mut().log.emit(Occurrence::ManyCaptures { function, captures: total });
    }
    if rt.core.get_mut().estimate.is_dry_run() {
        return jobs.chunk_by(|a, b| a.mode == b.mode).try_for_each(|kind| graph.sample(rt, kind, call));
    }
    let saving = Saving::begin(rt)?;
    for (done, job) in jobs.iter().enumerate() {
        progress(CaptureProgress { done, total, sizes: &job.sizes, symbols, mode: job.mode });
        graph.converge(saving.0, job, call)?;
        saving.discard_reports()?;
    }
    saving.end()?;
    progress(CaptureProgress { done: total, total, sizes: &[], symbols, mode: graph.dispatcher.mode() });
    Ok(())
}

impl GraphObject {
    /// Like [`capture_all`], in a state that is discarded: captures only the two largest combinations of each
    /// kind, and estimates the others.
    fn sample(&self, rt: &mut Runtime, jobs: &[Job], call: Call<'_>) -> Result<()> {
        let buffers = NewBuffers { function: self, before: self.statics_now() };
        let mut counts = vec![rt.core.get_mut().tree.recorded()];
        let saving = Saving::begin(rt)?;
        let sampled = jobs.iter().take(2).try_for_each(|job| {
            self.converge(saving.0, job, call)?;
            counts.push(saving.0.core.get_mut().tree.recorded());
            Ok(())
        });
        let saved = saving.end();
        let core = rt.core.get_mut();
        // What was recorded with them counts until the end of the plan.
        core.estimate.hold_to_the_end(buffers.take());
        sampled.and(saved)?;
        let left = jobs.len().saturating_sub(2) as u64;
        let (mut nodes, mut bytes) = (0, 0);
        if let [_, first, second] = counts[..] {
            // The largest one may have had to load or grow what all of them share.
            nodes = left * second.0.saturating_sub(first.0);
            bytes = left * second.1.saturating_sub(first.1);
        }
        core.estimate.expect_more(nodes, bytes);
        Ok(())
    }

    /// Repeats a call until a pass records nothing new.
    fn converge(&self, rt: &mut Runtime, job: &Job, call: Call<'_>) -> Result<()> {
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
        if self.options.deny_fallback {
            let segments = fresh.iter().map(ToString::to_string).collect();
            return Err(Error::NotConverged { function, sizes: job.sizes.clone(), segments });
        }
        let (sizes, segments) = (&job.sizes[..], &fresh[..]);
        rt.core.get_mut().log.emit(Occurrence::NotConverged { function, sizes, segments });
        Ok(())
    }
}

/// Ignores the progress of `capture_all`.
pub fn silent(_: CaptureProgress<'_>) {}

/// The progress of `capture_all`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CaptureProgress<'a> {
    /// The number of combinations of sizes that have been captured.
    pub done: usize,
    /// The total number of combinations.
    pub total: usize,
    /// The current sizes, one per symbol; empty at the end.
    pub sizes: &'a [usize],
    /// The names of the symbols.
    pub symbols: &'static [&'static str],
    /// The current kind of capture: `Piecewise` or `Full`; at the end, the mode of the graph.
    pub mode: Mode,
}
