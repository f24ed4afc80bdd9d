//! Where events go: counters always, the list when asked for, `tracing` when enabled.

use std::time::Duration;

mod printer;

use printer::Printer;

use crate::{
    Stats,
    base::{plan::Site, reason::FallbackReason, recording_id::RecordingId},
    observe::event::{CopySlot, Event, RerecordReason, UnsharedReason, WaitReason},
};

/// The target of all events, as subscribers filter it.
const TARGET: &str = "graphable::log";

/// Events are kept up to this many; older ones go first.
const KEPT: usize = 65_536;

/// Why a segment runs in warm-up now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    NotWarm,
    SameCall,
    Behind(&'static Site),
}

impl Wait {
    pub(crate) fn reason(self) -> WaitReason {
        match self {
            Self::NotWarm => WaitReason::NotWarm,
            Self::SameCall => WaitReason::WarmedInThisCall,
            Self::Behind(site) => WaitReason::BehindWarmUp { segment: site.to_string() },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) stats: Stats,
    keep: bool,
    printer: Printer,
    /// Whether anybody wants events: they are not even made otherwise.
    listens: bool,
    events: std::collections::VecDeque<Event>,
    /// What was warned of, by function.
    warned: Vec<(&'static str, FallbackReason)>,
    /// The segments that were warmed up or recorded, while somebody watches.
    fresh: Option<Vec<&'static Site>>,
}

impl Default for Log {
    fn default() -> Self {
        let printer = Printer::of_environment();
        Self {
            stats: Stats::default(),
            keep: false,
            listens: printer.is_on(),
            printer,
            events: Default::default(),
            warned: Vec::new(),
            fresh: None,
        }
    }
}

impl Log {
    pub(crate) fn keep(&mut self, on: bool) {
        self.keep = on;
        self.listens = on || self.printer.is_on();
        if !on {
            self.events.clear();
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    /// Starts or ends the watch for what is new; gives what there was since the last call.
    pub(crate) fn watch(&mut self, on: bool) -> Vec<&'static Site> {
        std::mem::replace(&mut self.fresh, on.then(Vec::new)).unwrap_or_default()
    }

    fn is_new(&mut self, site: &'static Site) {
        if let Some(fresh) = &mut self.fresh
            && !fresh.contains(&site)
        {
            fresh.push(site);
        }
    }

    #[inline]
    fn push(&mut self, event: impl FnOnce() -> Event) {
        if self.listens {
            self.add(event(), true);
        }
    }

    #[cold]
    fn add(&mut self, event: Event, print: bool) {
        if print {
            self.printer.print(&event);
        }
        if self.keep {
            if self.events.len() == KEPT {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    pub(crate) fn replayed(&mut self, site: &'static Site, recording: RecordingId) {
        self.stats.replays += 1;
        tracing::trace!(target: TARGET, segment = %site, recording = recording.number(), "replayed");
        self.push(|| Event::Replayed { segment: site.to_string(), recording });
    }

    pub(crate) fn warmed(&mut self, site: &'static Site) {
        self.stats.warmups += 1;
        self.is_new(site);
        tracing::debug!(target: TARGET, segment = %site, "warmed up");
        self.push(|| Event::Warmed { segment: site.to_string() });
    }

    /// A segment that is warm runs without a recording, for now.
    pub(crate) fn waited(&mut self, function: &'static str, site: &'static Site, wait: Wait) {
        self.stats.waits += 1;
        let why = || wait.reason();
        tracing::debug!(target: TARGET, function, segment = %site, why = %why(), "waits to be recorded");
        self.push(|| Event::Waited { function, segment: site.to_string(), why: why() });
    }

    /// `capture` is the host time that it took.
    pub(crate) fn recorded(&mut self, site: &'static Site, recording: RecordingId, capture: Duration) {
        self.stats.recordings += 1;
        self.stats.capture_time = self.stats.capture_time.saturating_add(capture);
        self.is_new(site);
        tracing::debug!(target: TARGET, segment = %site, recording = recording.number(), ?capture, "recorded");
        self.push(|| Event::Recorded { segment: site.to_string(), recording, capture });
    }

    /// A recording runs by the executable of another.
    pub(crate) fn shared(&mut self, site: &'static Site, recording: RecordingId, with: RecordingId) {
        self.stats.shares += 1;
        tracing::debug!(target: TARGET, segment = %site, recording = recording.number(), with = with.number(), "shares an executable");
        self.push(|| Event::Shared { segment: site.to_string(), recording, with });
    }

    /// An executable was updated to run a recording.
    pub(crate) fn updated(&mut self, site: &'static Site, recording: RecordingId, cost: Duration) {
        self.stats.updates += 1;
        self.stats.update_time = self.stats.update_time.saturating_add(cost);
        tracing::trace!(target: TARGET, segment = %site, recording = recording.number(), ?cost, "updated");
        self.push(|| Event::Updated { segment: site.to_string(), recording, cost });
    }

    /// A recording has an executable of its own, where it might have shared one.
    pub(crate) fn unshared(&mut self, site: &'static Site, recording: RecordingId, why: UnsharedReason) {
        self.stats.unshared += 1;
        tracing::info!(target: TARGET, segment = %site, recording = recording.number(), %why, "has an executable of its own");
        self.push(|| Event::Unshared { segment: site.to_string(), recording, why });
    }

    pub(crate) fn rerecorded(&mut self, site: &'static Site, why: RerecordReason) {
        self.stats.rerecordings += 1;
        tracing::info!(target: TARGET, segment = %site, %why, "recorded again");
        self.push(|| Event::Rerecorded { segment: site.to_string(), why });
    }

    pub(crate) fn ran_eager(&mut self, site: &'static Site) {
        self.stats.eager_calls += 1;
        tracing::trace!(target: TARGET, boundary = %site, "eager region");
        self.push(|| Event::RanEager { boundary: site.to_string() });
    }

    pub(crate) fn copied(&mut self, slot: CopySlot, bytes: u64) {
        self.stats.copies += 1;
        self.stats.copied_bytes += bytes;
        tracing::debug!(target: TARGET, ?slot, bytes, "copied");
        self.push(|| Event::Copied { slot, bytes });
    }

    /// Counts every fallback, and warns about each cause once a function.
    pub(crate) fn fell_back(&mut self, function: &'static str, why: FallbackReason) {
        match why.is_wanted() {
            true => self.stats.skips += 1,
            false => self.stats.fallbacks += 1,
        }
        match self.stats.fallback_reasons.iter_mut().find(|(r, _)| r.same_cause(&why)) {
            Some((_, count)) => *count += 1,
            None => self.stats.fallback_reasons.push((why.clone(), 1)),
        }
        let is_new = !self.warned.iter().any(|(f, r)| *f == function && r.same_cause(&why));
        if is_new {
            match why.is_wanted() {
                true => tracing::debug!(target: TARGET, function, %why, "runs without a graph"),
                false => tracing::warn!(target: TARGET, function, %why, "runs without a graph"),
            }
            self.warned.push((function, why.clone()));
        }
        if self.listens {
            self.add(Event::FellBack { function, why }, is_new);
        }
    }

    pub(crate) fn switched_to_copy(&mut self, site: &'static Site, live_in: usize, moves: usize) {
        tracing::warn!(target: TARGET, segment = %site, live_in, moves, "a live-in keeps moving; it is copied from now on");
        self.push(|| Event::SwitchedToCopy { segment: site.to_string(), live_in, moves });
    }

    pub(crate) fn many_shapes(&mut self, function: &'static str, shapes: usize) {
        tracing::warn!(target: TARGET, function, shapes, "is recorded for many shapes; buckets would bound their number");
        self.push(|| Event::ManyShapes { function, shapes });
    }

    pub(crate) fn many_captures(&mut self, function: &'static str, captures: usize) {
        tracing::warn!(target: TARGET,
            function,
            captures,
            "`capture_all` captures every combination of these sizes; list those that occur"
        );
        self.push(|| Event::ManyCaptures { function, captures });
    }

    pub(crate) fn not_converged(&mut self, function: &'static str, sizes: Vec<usize>, segments: Vec<String>) {
        self.stats.not_converged += 1;
        tracing::warn!(target: TARGET, function, ?sizes, ?segments, "still records something new");
        self.push(|| Event::NotConverged { function, sizes, segments });
    }

    pub(crate) fn measured(&mut self, expected_bytes: Option<u64>, bytes: u64) {
        tracing::info!(target: TARGET, ?expected_bytes, bytes, "captures took memory");
        self.push(|| Event::CaptureMeasured { expected_bytes, bytes });
    }

    pub(crate) fn evicted(&mut self, nodes: usize) {
        self.stats.evicted += nodes as u64;
        tracing::debug!(target: TARGET, nodes, "evicted");
        self.push(|| Event::Evicted { nodes });
    }

    pub(crate) fn aborted(&mut self, site: &'static Site) {
        self.stats.aborted += 1;
        tracing::info!(target: TARGET, segment = %site, "capture abandoned");
        self.push(|| Event::Aborted { segment: site.to_string() });
    }

    /// A capture was invalidated from outside and is tried again.
    pub(crate) fn capture_invalidated(&mut self, site: &'static Site) {
        self.stats.captures_invalidated += 1;
        // It may end without a recording, which is then to come.
        self.is_new(site);
        tracing::warn!(target: TARGET, segment = %site, "another thread of this process disturbed a capture; recording again");
        self.push(|| Event::CaptureInvalidated { segment: site.to_string() });
    }

    pub(crate) fn audited(&mut self, site: &'static Site) {
        self.stats.audits += 1;
        tracing::debug!(target: TARGET, segment = %site, "audited");
        self.push(|| Event::Audited { segment: site.to_string() });
    }
}
