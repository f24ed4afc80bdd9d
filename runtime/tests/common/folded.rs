//! The counters of a runtime, added up once more from the list of its events.

use std::{
    collections::{BTreeSet, HashMap},
    mem::{Discriminant, discriminant},
};

use graphable::{Event, FallbackReason, RecordingId, Stats};

/// Sums over the events so far.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    sums: Stats,
    fallbacks: HashMap<Discriminant<FallbackReason>, u64>,
    recorded: BTreeSet<RecordingId>,
    /// The segment that waited last, if its warm-up is to come.
    waiting: Option<String>,
}

impl Folded {
    /// Adds the next events, and looks at their order.
    pub(crate) fn add(&mut self, events: &[Event]) {
        for event in events {
            match (self.waiting.take(), event) {
                (None, _) => {}
                (Some(waited), Event::Warmed { segment }) if waited == *segment => {}
                (Some(waited), other) => panic!("{waited} waited, and then {other}"),
            }
            self.add_one(event);
        }
    }

    fn add_one(&mut self, event: &Event) {
        let Self { sums, recorded, .. } = self;
        match event {
            Event::Waited { segment, .. } => {
                sums.waits += 1;
                self.waiting = Some(segment.clone());
            }
            Event::Warmed { .. } => sums.warmups += 1,
            Event::Recorded { recording, capture, .. } => {
                sums.recordings += 1;
                sums.capture_time += *capture;
                assert!(recorded.insert(*recording), "an id that was given before: {event}");
            }
            Event::Replayed { recording, .. } => {
                sums.replays += 1;
                assert!(recorded.contains(recording), "not recorded: {event}");
            }
            Event::Shared { recording, with, .. } => {
                sums.shares += 1;
                assert!(
                    recorded.contains(recording) && recorded.contains(with) && recording != with,
                    "{event}"
                );
            }
            Event::Unshared { recording, .. } => {
                sums.unshared += 1;
                assert!(recorded.contains(recording), "not recorded: {event}");
            }
            // May be of one that is recorded next.
            Event::Updated { cost, .. } => {
                sums.updates += 1;
                sums.update_time += *cost;
            }
            Event::Copied { bytes, .. } => {
                sums.copies += 1;
                sums.copied_bytes += bytes;
            }
            Event::FellBack { reason, .. } => {
                *if reason.is_wanted() { &mut sums.skips } else { &mut sums.fallbacks } += 1;
                *self.fallbacks.entry(discriminant(reason)).or_default() += 1;
            }
            Event::Evicted { recordings } => {
                assert!(*recordings > 0, "{event}");
                sums.evicted += *recordings as u64;
            }
            Event::Rerecorded { .. } => sums.rerecordings += 1,
            Event::RanEager { .. } => sums.eager_calls += 1,
            Event::NotConverged { .. } => sums.not_converged += 1,
            Event::Aborted { .. } => sums.aborted += 1,
            Event::CaptureInvalidated { .. } => sums.captures_invalidated += 1,
            Event::Audited { .. } => sums.audits += 1,
            Event::SwitchedToCopy { .. }
            | Event::ManyShapes { .. }
            | Event::ManyCaptures { .. }
            | Event::CaptureMeasured { .. } => {}
            other => panic!("what does {other} count?"),
        }
    }

    /// What of the counters differs.
    pub(crate) fn differs_from(&self, stats: &Stats) -> Option<String> {
        let mut sums = self.sums.clone();
        sums.live_recordings = usize::try_from(sums.recordings - sums.evicted).unwrap();
        // What there is now, and the causes of fallbacks, which are added up by kind.
        (sums.copied_slots, sums.executables) = (stats.copied_slots, stats.executables);
        (sums.staging_waits, sums.fallback_reasons) = (stats.staging_waits, stats.fallback_reasons.clone());
        let mut fallbacks = HashMap::new();
        for (reason, count) in &stats.fallback_reasons {
            *fallbacks.entry(discriminant(reason)).or_default() += count;
        }
        let same = sums == *stats && fallbacks == self.fallbacks;
        (!same).then(|| format!("the events say {sums:?} and {:?}, the counters {stats:?}", self.fallbacks))
    }
}
