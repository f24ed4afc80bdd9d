//! Counters of a runtime.

use std::time::Duration;

#[cfg(doc)]
use crate::{Event, MemoryStats, WaitReason};
use crate::{FallbackReason, RecordingId, observe::occurrence::Occurrence};

/// Sums over the [`Event`]s, and current sizes. Bytes are in [`MemoryStats`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments run in warm-up.
    pub warmups: u64,
    /// The number of warm-ups of segments that are already warm and wait to be recorded, each for a
    /// [`WaitReason`].
    pub waits: u64,
    /// Segments recorded.
    pub recordings: u64,
    /// The host time of captures, the sum over [`Event::Recorded`].
    pub capture_time: Duration,
    /// Recordings run.
    pub replays: u64,
    /// Recordings made although one of that shape existed.
    pub rerecordings: u64,
    /// Recordings that use the executable of another one.
    pub shares: u64,
    /// Executables updated in place, to run another of the recordings that share them.
    pub updates: u64,
    /// The host time of those updates.
    pub update_time: Duration,
    /// Recordings that got an executable of their own, although recordings may share them.
    pub unshared: u64,
    /// Eager regions run.
    pub eager_calls: u64,
    /// Tensors copied to their slots.
    pub copies: u64,
    /// The number of bytes copied.
    pub copied_bytes: u64,
    /// The live-ins that existing recordings copy because their address kept changing.
    pub copied_slots: usize,
    /// Calls or segments that ran without a graph.
    pub fallbacks: u64,
    /// The same, where the program requested it: switched off, too small, a policy.
    pub skips: u64,
    /// Combinations of sizes for which `capture_all` did not converge.
    pub not_converged: u64,
    /// Recordings evicted.
    pub evicted: u64,
    /// Captures aborted.
    pub aborted: u64,
    /// Captures invalidated from outside this runtime, such as by a device-wide wait on another thread.
    pub captures_invalidated: u64,
    /// Audits made.
    pub audits: u64,
    /// On a GPU: how often the host waited for the device because all staging memory for host inputs too
    /// large for a kernel's parameter was in use. The host runs ahead by at most 64 such inputs, or 256 MiB,
    /// and within one call by at most 64 MiB.
    pub staging_waits: u64,
    /// The current number of recordings.
    pub live_recordings: usize,
    /// The current number of executables: fewer than recordings if some share one, or launch nothing.
    pub executables: usize,
    /// The reasons of fallbacks and skips, each once with its count. Sizes and numbers in them are those of
    /// the first occurrence.
    pub fallback_reasons: Vec<(FallbackReason, u64)>,
}

impl Stats {
    /// Adds one occurrence. Counts everything except what the tree and the device know: `copied_slots`, `live_recordings`,
    /// `executables` and `staging_waits`.
    #[inline(always)]
    pub(crate) fn apply(&mut self, occurrence: &Occurrence<'_>) {
        match *occurrence {
            Occurrence::Replayed { .. } => self.replays += 1,
            Occurrence::RanEager { .. } => self.eager_calls += 1,
            Occurrence::Copied { bytes, .. } => {
                self.copies += 1;
                self.copied_bytes += bytes;
            }
            Occurrence::Updated { cost, .. } => {
                self.updates += 1;
                self.update_time = self.update_time.saturating_add(cost);
            }
            Occurrence::Warmed { .. } => self.warmups += 1,
            Occurrence::Waited { .. } => self.waits += 1,
            Occurrence::Recorded { capture, .. } => {
                self.recordings += 1;
                self.capture_time = self.capture_time.saturating_add(capture);
            }
            Occurrence::Rerecorded { .. } => self.rerecordings += 1,
            Occurrence::Shared { .. } => self.shares += 1,
            Occurrence::Unshared { .. } => self.unshared += 1,
            Occurrence::FellBack { reason, .. } => self.count_fallback(reason),
            Occurrence::NotConverged { .. } => self.not_converged += 1,
            Occurrence::Evicted { recordings } => self.evicted += recordings as u64,
            Occurrence::Aborted { .. } => self.aborted += 1,
            Occurrence::CaptureInvalidated { .. } => self.captures_invalidated += 1,
            Occurrence::Audited { .. } => self.audits += 1,
            Occurrence::NeverRan { .. }
            | Occurrence::SplitOff { .. }
            | Occurrence::StillShared { .. }
            | Occurrence::ReplayFailed { .. }
            | Occurrence::Destroyed { .. }
            | Occurrence::SwitchedToCopy { .. }
            | Occurrence::ManyShapes { .. }
            | Occurrence::ManyCaptures { .. }
            | Occurrence::CaptureMeasured { .. } => {}
        }
    }

    fn count_fallback(&mut self, reason: &FallbackReason) {
        match reason.is_wanted() {
            true => self.skips += 1,
            false => self.fallbacks += 1,
        }
        match self.fallback_reasons.iter_mut().find(|(known, _)| known.same_cause(reason)) {
            Some((_, count)) => *count += 1,
            None => self.fallback_reasons.push((reason.clone(), 1)),
        }
    }
}

/// A live-in that a recording copies because its address kept changing: see
/// [`Runtime::copied_slots`](crate::Runtime::copied_slots).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedSlot {
    /// The segment.
    pub segment: String,
    /// The recording.
    pub recording: RecordingId,
    /// The index among the segment's device operands.
    pub live_in: usize,
    /// The size of one copy in bytes: the part of the live-in that the recording reads.
    pub bytes: u64,
    /// The number of copies.
    pub copies: u64,
}
