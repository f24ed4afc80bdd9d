//! Values as the core knows them: layouts, keys, and memory with an owner.

pub(crate) mod dim;
pub(crate) mod entry;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod live_in;
pub(crate) mod memory;
pub(crate) mod owned;
pub(crate) mod persistent;
pub(crate) mod raw;
pub(crate) mod retire;
pub(crate) mod view;
