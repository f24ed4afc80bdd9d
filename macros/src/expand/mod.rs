//! From what is known of an item to tokens.

pub(crate) mod fallback;
pub(crate) mod graph_object;
