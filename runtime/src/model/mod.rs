//! Models: structs of parameters, and how they are filled from files.

pub mod load;
pub(crate) mod params;
