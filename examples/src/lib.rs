//! Placeholder replaced by the real crate in the same series.
