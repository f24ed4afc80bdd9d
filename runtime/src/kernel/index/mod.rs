//! Kernels of indices: [`call`] checks the shapes and launches, [`cpu`] runs the function for one element after the other,
//! [`cuda`] for several in each thread. [`lang`] defines what views are on the CPU, `index.cuh` on GPUs.

mod call;
mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;
pub mod lang;
pub(super) mod operation;
