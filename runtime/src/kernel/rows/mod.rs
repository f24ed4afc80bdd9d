//! Kernels of rows: [`call`] finds the rows of the operands and launches, [`cpu`] runs the function for one row after the
//! other, [`beside`] some of those that lie side by side at once, [`cuda`] with the threads of a warp or a block for each. [`lang`] defines what rows are on the CPU, and
//! [`reductions`] how they are reduced; `rows.cuh` and `reductions.cuh` do so on GPUs, in the same order.

mod beside;
mod call;
pub mod columns;
pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;
pub mod lang;
#[cfg(feature = "cuda")]
pub(super) mod plan;
mod reductions;
