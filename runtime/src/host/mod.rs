//! The code between graphs: steps, eager regions, and how values pass from host code into segments and back.

pub mod boundary;
pub(crate) mod capturable;
pub mod control;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod device_event;
pub(crate) mod device_flow;
pub(crate) mod eager;
pub(crate) mod join;
mod keep;
pub(crate) mod padding;
pub(crate) mod piecewise;
pub(crate) mod pinned_log;
pub(crate) mod ragged;
mod rng;
#[cfg(feature = "safetensors")]
mod save;
pub(crate) mod step;
mod tiled_weights;
mod values;
mod weights;
