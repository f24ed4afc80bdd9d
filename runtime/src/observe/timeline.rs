//! Spans for a timeline: steps, calls, segments and eager regions, through `tracing`.
//!
//! All have the target `graphable::timeline` and the level TRACE, and cost a load each while no subscriber
//! wants them. Segments and regions are named as the user knows them: function and number, file and line. What the device
//! did of them, and when, is told by events of the same target (`runtime/device_timeline.rs`).

/// A span of the timeline.
macro_rules! span {
    ($name:literal $(, $($fields:tt)+)?) => {
        tracing::trace_span!(target: "graphable::timeline", $name $(, $($fields)+)?)
    };
}

pub(crate) use span;
