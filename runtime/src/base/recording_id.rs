//! How users know a recording.

use std::fmt;

/// A recording of a runtime, as events, hooks and [`GraphTree`](crate::inspect::GraphTree) number it. Never given twice by
/// one runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RecordingId(usize);

impl RecordingId {
    /// The number, which is also what [`Display`](fmt::Display) writes.
    pub fn number(self) -> usize {
        self.0
    }

    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Of a number that was printed.
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

/// Against a number that was printed.
impl PartialEq<usize> for RecordingId {
    fn eq(&self, number: &usize) -> bool {
        self.0 == *number
    }
}
