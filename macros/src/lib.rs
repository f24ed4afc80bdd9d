//! The `#[graphable]` attribute and derives.
