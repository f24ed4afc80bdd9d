//! Checks that reject code.

pub(crate) mod device;
pub(crate) mod host_code;
pub(crate) mod lints;
pub(crate) mod misplaced;
