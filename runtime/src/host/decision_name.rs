//! Names of decisions in the timeline.

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
