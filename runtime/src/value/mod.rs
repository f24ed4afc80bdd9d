//! Values as the core sees them: layouts, keys, and owned memory.

pub(crate) mod dim;
pub(crate) mod entry;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod live_in;
pub(crate) mod memory;
pub(crate) mod owned;
pub(crate) mod persistent;
pub(crate) mod raw;
mod recorded_addr;
pub(crate) mod retire;
pub(crate) mod view;
