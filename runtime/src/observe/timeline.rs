//! Spans for a timeline: steps, calls, segments and eager regions, through `tracing`.
//!
//! All have the target `graphable::timeline` and the level TRACE, and cost a load each while no subscriber
//! wants them. Segments and regions are named as the user knows them: function and number, file and line. What the device
//! did of them, and when, is told by events of the same target (`runtime/device_timeline.rs`).
//!
//! Unlike everything else here they are not made from occurrences: a span has an end, which is that of a variable
//! on the stack of its thread, and a step that is forgotten has none.

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

/// `decision`, what the runtime does with it, is recorded when it is known.
#[inline]
pub(crate) fn segment(site: &'static Site) -> EnteredSpan {
    trace_span!(
        target: TARGET,
        "segment",
        segment = %site,
        title = %site.title(),
        file = site.file,
        line = site.first_line,
        decision = field::Empty
    )
    .entered()
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
