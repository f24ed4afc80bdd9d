//! Expansion of the model of an item to tokens. Nothing here fails, or finds errors.

mod boundary;
mod device_flow;
pub(crate) mod fallback;
pub(crate) mod function;
pub(crate) mod graph_object;
mod host_code;
mod live_values;
mod plan;
mod questions;
mod segment;
mod value;

pub(crate) use host_code::body;

#[cfg(test)]
pub(crate) mod tests;
