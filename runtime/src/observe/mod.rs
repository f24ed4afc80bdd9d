//! Everything that reports what a runtime does and holds.

pub(crate) mod caches;
pub(crate) mod event;
mod event_text;
pub(crate) mod hooks;
pub(crate) mod inspect;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod occurrence;
pub(crate) mod stats;
pub(crate) mod timeline;
