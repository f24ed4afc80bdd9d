//! Graphs of small functions, each seen whole: without boundaries, with branches, with errors of the user's own, with
//! parameters that are keys or are loaded by name, and among names that generated code must not pick up.

pub mod branchy;
#[path = "../common/device.rs"]
mod device;
pub mod errors;
pub mod hygiene;
pub mod in_place;
pub mod params;
pub mod plain;
pub mod random;
