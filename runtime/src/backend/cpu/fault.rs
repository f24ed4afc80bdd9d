//! Faults that the code of an operation can find while it runs.

use std::{
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Error, Result};

/// The first mistake that an operation found. After an index out of range its output is complete nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An index out of range.
    Index {
        /// The operation, by [`Op::name`](crate::backend::Op::name).
        op: &'static str,
        /// The index.
        index: u64,
        /// The number of rows.
        bound: u64,
    },
    /// A loop was ended by its limit.
    LoopLimit {
        /// The position of the loop.
        at: &'static Location<'static>,
        /// The largest number of rounds.
        limit: u32,
    },
    /// Code of a user failed: its outputs hold anything.
    Failed {
        /// The operation.
        op: &'static str,
        /// The cause.
        reason: String,
    },
}

/// The first fault that was not reported yet, and its place on the stream; likewise the first operation of the user that
/// failed, since it leaves no valid value, unlike the others.
///
/// They stay here until somebody who has waited for work behind them takes them, so no answer that is dropped unseen can
/// take a fault with it, and nobody gets values that were computed after a fault before it was reported.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<First>);

#[derive(Debug, Default)]
struct First {
    reported: Option<(u64, Fault)>,
    failed: Option<(u64, Fault)>,
}

impl Faults {
    fn first(&self) -> MutexGuard<'_, First> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a fault of the command that is number `at` on the stream, if it is the first.
    pub(super) fn note(&self, at: u64, fault: Fault) {
        let mut first = self.first();
        let First { reported, failed } = &mut *first;
        let place = if matches!(fault, Fault::Failed { .. }) { failed } else { reported };
        place.get_or_insert((at, fault));
    }

    /// Returns the earlier of both, once, to a caller that has waited for the command that is number `at`.
    ///
    /// # Errors
    /// Returns the fault of that command, or of one before it.
    pub(super) fn check(&self, at: u64) -> Result<()> {
        let mut first = self.first();
        let First { reported, failed } = &mut *first;
        let place_of = |fault: &Option<(u64, Fault)>| fault.as_ref().map_or(u64::MAX, |(place, _)| *place);
        let earlier = if place_of(failed) < place_of(reported) { failed } else { reported };
        match earlier.take_if(|(place, _)| *place <= at) {
            Some((_, fault)) => Err(fault.into()),
            None => Ok(()),
        }
    }

    /// Likewise, of failed operations alone.
    ///
    /// # Errors
    /// Returns the failure of that command, or of one before it.
    pub(super) fn check_failed(&self, at: u64) -> Result<()> {
        match self.first().failed.take_if(|(place, _)| *place <= at) {
            Some((_, fault)) => Err(fault.into()),
            None => Ok(()),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Index { op, index, bound } => Self::IndexOutOfRange { op, index, bound },
            Fault::LoopLimit { at, limit } => Self::LoopLimit { at, limit },
            Fault::Failed { op, reason } => Self::OperationFailed { op, reason },
        }
    }
}
