//! The operations that decide for [`control`](crate::control): each writes the number of the body that runs next.

use std::panic::Location;

use self::operation::{BeginLoop, Case, Choose, NextRound, Switch};
use super::launch::compute;
use crate::{Result, Scope, Tensor, backend::View, value::layout::PaddedDims};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// Returns 0 where `pred`, a bool, is true, and 1 otherwise.
///
/// # Errors
/// Returns errors of the device.
pub(crate) fn choose<'s>(scope: Scope<'s>, pred: View) -> Result<Tensor<'s, u32>> {
    compute(scope, Choose, &[pred], &[], PaddedDims::NONE)
}

/// Returns the number of the case that contains `index`, by its bits; `cases.len()` if none does.
///
/// # Errors
/// Returns errors of the device.
pub(crate) fn choose_case<'s>(scope: Scope<'s>, index: View, cases: &[&[u32]]) -> Result<Tensor<'s, u32>> {
    let mut table: Vec<Case> = Vec::new();
    for (body, values) in (0..).zip(cases) {
        for &value in *values {
            // The first case counts.
            if table.iter().all(|case| case.value != value) {
                table.push(Case { value, body });
            }
        }
    }
    let op = Switch { table: table.into(), default: cases.len() as u32 };
    compute(scope, op, &[index], &[], PaddedDims::NONE)
}

/// The counter of a loop, and the number of the body that runs next: 0, or [`STOP`].
#[derive(Debug)]
pub(crate) struct LoopState<'s> {
    pub(crate) selector: Tensor<'s, u32>,
    rounds: Tensor<'s, u32>,
    limit: u32,
    at: &'static Location<'static>,
}

impl<'s> LoopState<'s> {
    /// Starts to count the rounds of a loop, of which the first one takes place if `pred` is true.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn begin(
        scope: Scope<'s>,
        pred: View,
        limit: u32,
        at: &'static Location<'static>,
    ) -> Result<Self> {
        let op = BeginLoop.into();
        let selector = scope.empty::<u32>(&op, &[], PaddedDims::NONE)?;
        let rounds = scope.empty::<u32>(&op, &[], PaddedDims::NONE)?;
        scope.launch(op, &[pred], &[selector.raw.view(), rounds.raw.view()])?;
        Ok(Self { selector, rounds, limit, at })
    }

    /// A round is over: another one takes place if `pred` is true and the limit allows it. If only the limit does
    /// not, that is a fault.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn next_round(&self, pred: View) -> Result<()> {
        let op = NextRound { limit: self.limit, at: self.at };
        let outputs = [self.selector.raw.view(), self.rounds.raw.view()];
        self.selector.scope().launch(op.into(), &[pred], &outputs)
    }
}
