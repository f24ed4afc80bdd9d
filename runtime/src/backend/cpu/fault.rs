//! Faults that the code of an operation can find while it runs.

use std::panic::Location;

use crate::Error;

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

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Index { op, index, bound } => Self::IndexOutOfRange { op, index, bound },
            Fault::LoopLimit { at, limit } => Self::LoopLimit { at, limit },
            Fault::Failed { op, reason } => Self::OperationFailed { op, why: reason },
        }
    }
}
