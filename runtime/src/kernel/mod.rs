//! Kernels that are written in Rust, our own and those of users.
//!
//! [`#[kernel]`](macro@crate::kernel) makes a [`Definition`] of a function: a loop over a block of elements,
//! compiled by rustc, and a text for GPUs. This module turns them into operations: [`call`] checks operands
//! and launches, [`cpu`] runs the loop over blocks of strided views, [`source`] and [`cuda`] turn the text
//! into a kernel for the types of the tensors. [`lang`] defines operators and methods of kernels where Rust's
//! definition differs or is incomplete. Kernels of rows have all of this in [`rows`], and
//! those of indices in [`index`]. [`chain`] has several kernels of elements as one operation, and [`compose`] writes kernels
//! of which those in Rust are parts.

pub(crate) mod block;
pub(crate) mod call;
pub(crate) mod chain;
#[cfg(feature = "cuda")]
pub(crate) mod compose;
pub(crate) mod constants;
mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod definition;
pub(crate) mod exp;
mod hyperbolic;
pub(crate) mod index;
#[cfg(feature = "cuda")]
mod instances;
pub mod lang;
pub(crate) mod operation;
pub(crate) mod random;
pub(crate) mod replacement;
pub(crate) mod rows;
pub(crate) mod source;
mod tasks;
