//! Formats in which weights are stored as blocks of small integers, or floats of 8 bits, with scales: what their bytes mean, and how
//! floats become blocks.
//!
//! `format.rs` says what each format is. Every format reads the same way: the integers of a block, and for each
//! [`GROUP`] of them a scale and a minimum (`parts.rs`, with the layouts in `small.rs` and `k.rs`). All code that computes with
//! blocks in plain Rust is written with these parts, so a format is described in one place; kernels with vector instructions unpack
//! the integers themselves, and are compared with it. Floats of 8 bits are in `float8.rs`. `quantize` makes blocks; `tiles.rs` puts them into the order in which GPUs read
//! them.

pub(crate) mod float8;
mod format;
mod k;
mod parts;
pub(crate) mod quantize;
mod small;
pub(crate) mod tiles;

pub use format::BlockFormat;
pub(crate) use parts::{GROUP, Parts};
#[cfg(any(test, target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use small::IQ4_NL_VALUES;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
