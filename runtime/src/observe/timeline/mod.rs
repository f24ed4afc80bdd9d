//! Spans for a timeline: steps, calls, segments and eager regions, through `tracing`.
//!
//! All have the target `graphable::timeline` and the level TRACE, and cost a load each while no subscriber
//! wants them. Segments and regions are named as the user knows them: function and number, file and line. What the device
//! did of them, and when, is told by events of the same target (`device.rs`).

mod device;

pub(crate) use device::DeviceTimeline;

/// A span of the timeline.
macro_rules! span {
    ($name:literal $(, $($fields:tt)+)?) => {
        tracing::trace_span!(target: "graphable::timeline", $name $(, $($fields)+)?)
    };
}

pub(crate) use span;

use crate::{Result, core::Decision, core::RunKind};

/// A decision's name in the timeline.
pub(crate) fn name(decision: &Result<Decision>, fell_back: bool) -> &'static str {
    match decision {
        Ok(Decision::Replayed(_)) => "replay",
        Ok(Decision::Run(RunKind::Record)) => "record",
        Ok(Decision::Run(_)) if fell_back => "fallback",
        Ok(Decision::Run(_)) => "warm-up",
        Ok(Decision::Audit(_)) => "audit",
        Err(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_fallback_is_no_warm_up() {
        assert_eq!(name(&Ok(Decision::Run(RunKind::Warm)), false), "warm-up");
        assert_eq!(name(&Ok(Decision::Run(RunKind::Warm)), true), "fallback");
        assert_eq!(name(&Err(Error::NeverComputed { op: "a test" }), false), "failed");
    }
}
