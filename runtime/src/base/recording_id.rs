//! The ids by which users refer to recordings.

use std::fmt;

/// The id of a recording in events, hooks and [`GraphTree`](crate::inspect::GraphTree). A runtime never
/// reuses an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RecordingId(usize);

impl RecordingId {
    /// Returns the number, which is also what [`Display`](fmt::Display) writes.
    pub fn number(self) -> usize {
        self.0
    }

    /// Returns the next id.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Converts a number that was printed.
impl From<usize> for RecordingId {
    fn from(number: usize) -> Self {
        Self(number)
    }
}

impl fmt::Display for RecordingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Compares with a number that was printed.
impl PartialEq<usize> for RecordingId {
    fn eq(&self, number: &usize) -> bool {
        self.0 == *number
    }
}
