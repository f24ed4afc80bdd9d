//! Plain data used in errors, events and keys, and the locks of the small protocols between threads. Nothing here
//! depends on a device or a runtime.

pub(crate) mod batch;
pub(crate) mod bound;
pub(crate) mod contained;
pub(crate) mod dtype;
pub(crate) mod mode;
pub(crate) mod numerics;
pub(crate) mod plan;
pub(crate) mod rank;
pub(crate) mod reason;
pub(crate) mod recording_id;
pub(crate) mod sync;
