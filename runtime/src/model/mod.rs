//! Models: structs of parameters, and loading them from files.

pub mod load;
pub(crate) mod params;
