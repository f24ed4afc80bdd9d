//! Occurrences as events of `tracing`.

use tracing::{debug, info, trace, warn};

use super::TARGET;
use crate::observe::occurrence::{Occurrence as O, RecordingRef, names};

/// Reports an occurrence to `tracing`, at the level that [`O::level`] returns: macros cannot get it from
/// there.
pub(super) fn report(occurrence: O<'_>) {
    match occurrence {
        O::Replayed { recording: RecordingRef { id, site, .. } } => {
            trace!(target: TARGET, segment = %site, recording = id.number(), "replayed");
        }
        O::RanEager { site } => trace!(target: TARGET, boundary = %site, "eager region"),
        O::Updated { site, recording: id, cost } => {
            trace!(target: TARGET, segment = %site, recording = id.number(), ?cost, "updated")
        }
        O::Copied { slot, bytes } => debug!(target: TARGET, ?slot, bytes, "copied"),
        O::Warmed { site } => debug!(target: TARGET, segment = %site, "warmed up"),
        O::Waited { function, site, wait } => {
            debug!(target: TARGET, function, segment = %site, reason = %wait.reason(), "waits to be recorded");
        }
        O::Recorded { recording: RecordingRef { id, site, .. }, capture, .. } => {
            debug!(target: TARGET, segment = %site, recording = id.number(), ?capture, "recorded");
        }
        O::Shared { recording: RecordingRef { id, site, .. }, with } => {
            debug!(target: TARGET, segment = %site, recording = id.number(), with = with.number(), "shares an executable");
        }
        O::Evicted { recordings } => debug!(target: TARGET, recordings, "evicted"),
        O::Audited { site } => debug!(target: TARGET, segment = %site, "audited"),
        O::Unshared { recording: RecordingRef { id, site, .. }, reason } => {
            info!(target: TARGET, segment = %site, recording = id.number(), reason = %reason, "has an executable of its own");
        }
        O::Rerecorded { site, reason } => {
            info!(target: TARGET, segment = %site, reason = %reason, "recorded again");
        }
        O::CaptureMeasured { expected_bytes, bytes } => {
            info!(target: TARGET, ?expected_bytes, bytes, "captures took memory");
        }
        O::Aborted { site } => info!(target: TARGET, segment = %site, "capture aborted"),
        O::FellBack { function, reason } if reason.is_wanted() => {
            debug!(target: TARGET, function, reason = %reason, "runs without a graph");
        }
        O::FellBack { function, reason } => {
            warn!(target: TARGET, function, reason = %reason, "runs without a graph");
        }
        O::NeverRan { .. } | O::SplitOff { .. } | O::ReplayFailed { .. } | O::Destroyed { .. } => {}
        O::CaptureInvalidated { .. }
        | O::StillShared { .. }
        | O::SwitchedToCopy { .. }
        | O::ManyShapes { .. }
        | O::ManyCaptures { .. }
        | O::NotConverged { .. } => warn(occurrence),
    }
}

/// Warnings other than those about fallbacks.
fn warn(occurrence: O<'_>) {
    match occurrence {
        O::CaptureInvalidated { site } => {
            warn!(target: TARGET, segment = %site, "another thread of this process disturbed a capture; recording again");
        }
        O::StillShared { site, error } => {
            warn!(target: TARGET, segment = %site, %error, "no memory for an executable of its own");
        }
        O::SwitchedToCopy { site, live_in, moves } => {
            warn!(target: TARGET, segment = %site, live_in, moves, "a live-in keeps moving; it is copied from now on");
        }
        O::ManyShapes { function, shapes } => {
            warn!(target: TARGET, function, shapes, "is recorded for many shapes; buckets would bound their number");
        }
        O::ManyCaptures { function, captures } => warn!(
            target: TARGET,
            function,
            captures,
            "`capture_all` captures every combination of these sizes; list those that occur"
        ),
        O::NotConverged { function, sizes, segments } => {
            let segments = names(segments);
            warn!(target: TARGET, function, ?sizes, ?segments, "still records something new");
        }
        _ => {}
    }
}
