//! Products of few rows with K contiguous on both sides, which read every weight once: `thin.cuh`.
//!
//! Which products these are is a rule of the type and the shape alone, and so is the order of their sums, so that a product has
//! the same bits wherever it is computed: eagerly, in a recording, alone, or with operations before and after it in one kernel.

#[cfg(feature = "cuda")]
pub(super) mod alone;
#[cfg(feature = "cuda")]
mod cuda;
// Its threads are contexts of glibc.
#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod emulated;
pub(super) mod few_rows;
pub(super) mod fuse;
mod operation;
mod plan;
#[cfg(feature = "cuda")]
pub(super) mod samples;
#[cfg(test)]
mod tests;
#[cfg(feature = "cuda")]
pub(super) mod variant;
