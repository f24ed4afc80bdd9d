//! Values as the core knows them: layouts, keys, and memory with an owner.

pub(crate) mod layout;
pub(crate) mod live_in;
pub(crate) mod retire;
