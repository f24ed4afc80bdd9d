//! What is refused.

pub(crate) mod host_code;
pub(crate) mod lints;
pub(crate) mod misplaced;
