//! Spans for a timeline: steps, calls, segments and eager regions, through `tracing`.
//!
//! All have the target `graphable::timeline` and the level TRACE, and cost one load each while no subscriber
//! wants them. Segments and regions have the names that users know: function and number, file and line.
//! Events with the same target report the device's time for them (`runtime/device_timeline.rs`).
//!
//! Unlike everything else here, they are not made from occurrences: a span ends with a variable on the stack
//! of its thread, and a forgotten step has no end.

use tracing::{field, span::EnteredSpan, trace_span};

use crate::base::{mode::Mode, plan::Site};

const TARGET: &str = "graphable::timeline";

#[inline]
pub(crate) fn step() -> EnteredSpan {
    trace_span!(target: TARGET, "step").entered()
}

#[inline]
pub(crate) fn call(function: &'static str, mode: Mode) -> EnteredSpan {
    trace_span!(target: TARGET, "call", function, %mode).entered()
}

/// `decision`, the runtime's decision about it, is recorded when it is known. Returns `None` if no subscriber wants
/// it.
#[inline]
pub(crate) fn segment(site: &'static Site) -> Option<EnteredSpan> {
    let span = trace_span!(
        target: TARGET,
        "segment",
        segment = %site,
        title = %site.title(),
        file = site.file,
        line = site.first_line,
        decision = field::Empty
    );
    (!span.is_disabled()).then(|| span.entered())
}

#[inline]
pub(crate) fn region(site: &'static Site) -> EnteredSpan {
    trace_span!(
        target: TARGET,
        "eager",
        boundary = %site,
        title = %site.title(),
        file = site.file,
        line = site.first_line
    )
    .entered()
}
