//! Branches and loops on the device: values in every mode, memory, limits and errors.

mod attribute;
mod bodies;
mod closures;
#[path = "../common/device.rs"]
mod device;
mod edge_cases;
mod effects;
mod errors;
mod faults;
mod logs;
mod memory;
mod operands;
mod shown;
mod support;
mod values;
