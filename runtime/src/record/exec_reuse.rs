//! Recordings that run by one executable, which is updated in place: see [`crate::tree::CallSite`].
//!
//! The order of a replay is update, host bytes, launch. An update affects only later launches, so a wrong
//! guess about which recordings meet in a step costs time, never a correct value.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{replay::Replayer, stream::Stream};
use crate::{
    Error, Result,
    backend::{CapturedGraph, GraphExec, SharedMemory, Update},
    base::{plan::Site, recording_id::RecordingId},
    observe::{event::UnsharedReason, log::Log, occurrence::Occurrence},
    tree::{CallSite, ExecReuse, Identity, Recording, RecordingIndex, ReuseCandidate, Tree},
};

/// An executable is no longer shared after this number of consecutive updates over the budget: a single one
/// may be due to the machine.
const SLOW: u8 = 3;

/// A capture that ended.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    /// `None` when nothing was recorded.
    pub(crate) exec: Option<Arc<dyn GraphExec>>,
    pub(crate) reuse: Option<ExecReuse>,
    /// The recording whose executable is used, if there is one.
    pub(crate) with: Option<RecordingId>,
    /// The reason why none is used, if one was available.
    pub(crate) unshared: Option<UnsharedReason>,
}

impl Captured {
    fn own(exec: Arc<dyn GraphExec>, unshared: Option<UnsharedReason>) -> Self {
        Self { exec: Some(exec), unshared, ..Self::default() }
    }
}

/// The number of times that each segment ran in the running call.
#[derive(Debug, Default)]
pub(crate) struct CallOrdinals(FxHashMap<Identity, u32>);

impl CallOrdinals {
    /// A call begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A segment is called.
    pub(crate) fn count(&mut self, identity: Identity) {
        *self.0.entry(identity).or_default() += 1;
    }

    /// Returns how often it was called before this time.
    pub(super) fn before(&self, identity: Identity) -> u32 {
        self.0.get(&identity).map_or(0, |count| count - 1)
    }
}

fn is_over(cost: Duration, budget: Duration) -> bool {
    // A clock may not advance during a short update.
    cost > budget || budget.is_zero()
}

/// Finds and updates the executables of recordings.
#[derive(Debug)]
pub(super) struct ExecFinder<'c> {
    pub(super) tree: &'c mut Tree,
    pub(super) stream: &'c mut Stream,
    pub(super) log: &'c mut Log,
}

impl ExecFinder<'_> {
    /// Ends the capture of a run and finds an executable for it. On an error nothing of the capture is left.
    ///
    /// Recordings share executables where there is a budget, the time that an update may take.
    pub(super) fn end_capture(
        &mut self,
        site: &'static Site,
        call_site: CallSite,
        budget: Option<Duration>,
        retain: Vec<SharedMemory>,
    ) -> Result<Captured> {
        let backend = self.stream.backend_mut();
        let Some(budget) = budget else {
            return Ok(Captured { exec: backend.end_capture(retain)?, ..Captured::default() });
        };
        let Some(graph) = backend.end_capture_shared(retain)? else { return Ok(Captured::default()) };
        let mut captured = self.executable_for(site, &call_site, &graph, budget)?;
        captured.reuse = Some(ExecReuse { call_site, graph, slow: 0, parting: None });
        Ok(captured)
    }

    fn executable_for(
        &mut self,
        site: &'static Site,
        call_site: &CallSite,
        graph: &Arc<dyn CapturedGraph>,
        budget: Duration,
    ) -> Result<Captured> {
        let id = self.tree.next_id();
        let signature = match graph.signature() {
            Ok(signature) => signature,
            Err(reason) => {
                let reason = UnsharedReason::Refused { reason: reason.to_owned() };
                return Ok(Captured::own(self.stream.backend_mut().instantiate(graph)?, Some(reason)));
            }
        };
        if let Some(cached) = self.tree.take_cached(call_site, signature)
            // One update, whatever it takes: making another takes more.
            && let Ok(_) = self.update(site, id, &cached, graph)?
        {
            return Ok(Captured::own(cached, None));
        }
        let unshared = match self.tree.reuse_candidate(call_site, signature) {
            ReuseCandidate::None => None,
            ReuseCandidate::Nothing(reason) => Some(reason),
            ReuseCandidate::Of(at) => match self.try_to_share(site, at, graph, budget)? {
                Ok(exec) => {
                    let with = Some(self.tree.id(self.tree.first_of(at)));
                    return Ok(Captured { exec: Some(exec), with, ..Captured::default() });
                }
                Err(reason) => Some(reason),
            },
        };
        Ok(Captured::own(self.stream.backend_mut().instantiate(graph)?, unshared))
    }

    /// Updates the executable of recording `at` to run the new recording, if that is possible within the
    /// budget. Otherwise, the executable runs what it ran before.
    fn try_to_share(
        &mut self,
        site: &'static Site,
        at: RecordingIndex,
        graph: &Arc<dyn CapturedGraph>,
        budget: Duration,
    ) -> Result<Result<Arc<dyn GraphExec>, UnsharedReason>> {
        let id = self.tree.next_id();
        let Some((sharing, exec)) = self.tree.sharing(at) else {
            return Ok(Err(UnsharedReason::OtherTopology));
        };
        let (exec, there) = (Arc::clone(exec), Arc::clone(&sharing.graph));
        let cost = match self.update(site, id, &exec, graph)? {
            Ok(cost) if !is_over(cost, budget) => return Ok(Ok(exec)),
            Ok(cost) => cost,
            Err(reason) => return Ok(Err(reason)),
        };
        // Something else may have taken the time. The way back must be measured in any case.
        let back = match self.update(site, self.tree.id(at), &exec, &there)? {
            Ok(back) => back,
            Err(reason) => return Ok(Err(reason)),
        };
        if !is_over(back, budget)
            && let Ok(again) = self.update(site, id, &exec, graph)?
        {
            if !is_over(again, budget) {
                return Ok(Ok(exec));
            }
            if let Err(reason) = self.update(site, self.tree.id(at), &exec, &there)? {
                return Ok(Err(reason));
            }
        }
        Ok(Err(UnsharedReason::OverBudget { cost: cost.min(back), budget }))
    }

    /// Updates, counts the update, and returns its duration.
    fn update(
        &mut self,
        site: &'static Site,
        id: RecordingId,
        exec: &Arc<dyn GraphExec>,
        graph: &Arc<dyn CapturedGraph>,
    ) -> Result<Result<Duration, UnsharedReason>> {
        let begun = Instant::now();
        match self.stream.backend_mut().update(exec, graph)? {
            Update::Done => {
                let cost = begun.elapsed();
                self.log.emit(Occurrence::Updated { site, recording: id, cost });
                Ok(Ok(cost))
            }
            Update::Refused { reason } => Ok(Err(UnsharedReason::Refused { reason })),
        }
    }

    /// Updates the executable of recording `at` for it, or creates one of its own, if that was found to be
    /// better and there is memory for it.
    #[cold]
    fn rebind(&mut self, at: RecordingIndex, budget: Option<Duration>) -> Result<()> {
        let others = self.tree.sharers(at);
        let Some(site) = self.tree.recording(at).map(|recording| recording.site) else { return Ok(()) };
        let Some((sharing, exec)) = self.tree.sharing(at) else { return Ok(()) };
        let (exec, graph) = (Arc::clone(exec), Arc::clone(&sharing.graph));
        if let Some(reason) = sharing.parting.clone().filter(|_| !others.is_empty()) {
            match self.split_off(at, &graph, &reason) {
                Ok(()) => {
                    // A recording that is the only user has nothing to split from.
                    if let [other] = others[..]
                        && let Some(left) = self.tree.sharing_mut(other)
                    {
                        left.parting = None;
                    }
                    return Ok(());
                }
                // It continues as before: slower, but correct.
                Err(error @ Error::OutOfMemory { .. }) => {
                    self.log.emit(Occurrence::StillShared { site, error: &error });
                    if let Some(sharing) = self.tree.sharing_mut(at) {
                        (sharing.parting, sharing.slow) = (None, 0);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let cost = match self.update(site, self.tree.id(at), &exec, &graph)? {
            Ok(cost) => cost,
            Err(reason) => return self.split_off(at, &graph, &reason),
        };
        let budget = budget.unwrap_or(Duration::MAX);
        let met = self.tree.met(at);
        let Some(sharing) = self.tree.sharing_mut(at) else { return Ok(()) };
        sharing.slow = if is_over(cost, budget) { sharing.slow.saturating_add(1) } else { 0 };
        // This replay continues with the current executable: the next one gets an executable of its own.
        sharing.parting = match () {
            () if others.is_empty() => None,
            () if met => Some(UnsharedReason::SameStep),
            () if sharing.slow >= SLOW => Some(UnsharedReason::OverBudget { cost, budget }),
            () => sharing.parting.take(),
        };
        Ok(())
    }

    fn split_off(
        &mut self,
        at: RecordingIndex,
        graph: &Arc<dyn CapturedGraph>,
        reason: &UnsharedReason,
    ) -> Result<()> {
        let exec = self.stream.backend_mut().instantiate(graph)?;
        self.tree.split_off(at, exec);
        let executable = self.tree.executable(at);
        if let Some(recording) = self.tree.recording(at).map(Recording::as_recorded) {
            self.log.emit(Occurrence::SplitOff { recording, executable });
            self.log.emit(Occurrence::Unshared { recording, reason });
        }
        Ok(())
    }
}

impl Replayer<'_> {
    /// Makes sure that the executable of recording `at` runs that recording.
    ///
    /// # Errors
    /// Returns errors of the device; the recording can be tried again.
    #[inline]
    pub(super) fn make_current(&mut self, at: RecordingIndex) -> Result<()> {
        let Some((reuse, exec)) = self.tree.sharing(at) else { return Ok(()) };
        if exec.runs() != Some(reuse.graph.id()) {
            let (stream, log) = (&mut *self.launcher.stream, &mut *self.launcher.log);
            ExecFinder { tree: &mut *self.tree, stream, log }.rebind(at, self.reuse_budget)?;
        }
        self.tree.runs_now(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;
    use crate::value::owned::OwnerId;

    #[test]
    fn calls_are_counted_by_segment() {
        let (one, two) = (Identity::Segment(TypeId::of::<u8>()), Identity::Full(OwnerId::new()));
        let mut all = CallOrdinals::default();
        assert_eq!(all.before(one), 0);
        [one, one, two, one].into_iter().for_each(|i| all.count(i));
        assert_eq!((all.before(one), all.before(two)), (2, 0));
        all.clear();
        all.count(one);
        assert_eq!(all.before(one), 0);
    }

    #[test]
    fn no_time_is_enough_for_a_budget_of_none() {
        assert!(is_over(Duration::ZERO, Duration::ZERO));
        assert!(!is_over(Duration::from_micros(2), Duration::from_micros(2)));
        assert!(is_over(Duration::from_micros(3), Duration::from_micros(2)));
        assert!(!is_over(Duration::from_secs(9), Duration::MAX));
    }
}
