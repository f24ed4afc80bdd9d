//! Plain data used in errors, events and keys. Nothing here depends on a device or a runtime.

pub(crate) mod batch;
pub(crate) mod contained;
pub(crate) mod dtype;
pub(crate) mod mode;
pub(crate) mod plan;
pub(crate) mod rank;
pub(crate) mod reason;
pub(crate) mod recording_id;
