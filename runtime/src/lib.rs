//! graphable.
