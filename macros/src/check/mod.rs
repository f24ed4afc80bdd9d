//! What is refused.

pub(crate) mod lints;
pub(crate) mod misplaced;
