//! Errors of operations.

use super::{Error, masked_form};

impl Error {
    /// Returns a shape error with its operands.
    pub(crate) fn shape(op: &'static str, shapes: &[&[usize]], reason: impl Into<String>) -> Self {
        Self::Shape { op, shapes: shapes.iter().map(|s| s.to_vec()).collect(), reason: reason.into() }
    }

    /// The same refusal of a padded axis along which the operation works, with the operation to use instead, if there is one.
    #[must_use]
    pub(crate) fn or_masked(mut self) -> Self {
        if let Self::PaddedMix { op, instead, .. } = &mut self {
            *instead = masked_form::of(op);
        }
        self
    }

    /// Returns whether it is what a kernel reports while its results are complete nevertheless.
    pub(crate) fn is_report(&self) -> bool {
        matches!(self, Self::IndexOutOfRange { .. } | Self::LoopLimit { .. })
    }

    /// The same error of an operation that called the one that it names.
    #[must_use]
    pub(crate) fn of_operation(mut self, caller: &'static str) -> Self {
        // What an operation calls has a masked form, but the caller does more.
        if let Self::PaddedMix { instead, .. } = &mut self
            && !caller.ends_with("_keepdim")
        {
            *instead = None;
        }
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
