//! Errors of operations.

use super::Error;

impl Error {
    /// Returns a shape error with its operands.
    pub(crate) fn shape(op: &'static str, shapes: &[&[usize]], reason: impl Into<String>) -> Self {
        Self::Shape { op, shapes: shapes.iter().map(|s| s.to_vec()).collect(), reason: reason.into() }
    }

    /// Returns whether it is what a kernel reports while its results are complete nevertheless.
    pub(crate) fn is_report(&self) -> bool {
        matches!(self, Self::IndexOutOfRange { .. } | Self::LoopLimit { .. })
    }

    /// The same error of an operation that called the one that it names.
    #[must_use]
    pub(crate) fn of_operation(mut self, caller: &'static str) -> Self {
        if let Self::Shape { op, .. }
        | Self::Axis { op, .. }
        | Self::Argument { op, .. }
        | Self::DifferentRuntimes { op }
        | Self::PaddedMix { op, .. }
        | Self::PaddedSize { op, .. }
        | Self::OutsideSegment { op, .. }
        | Self::NeverComputed { op } = &mut self
        {
            *op = caller;
        }
        self
    }
}
