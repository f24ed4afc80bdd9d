//! Tools for the CPU code of operations: loops over strided views (`strided`), elements of any type
//! (`scalar`, with `with_scalar!` and `with_word!`), floating-point elements and rows as f32 (`real`, `float`), indices in
//! device memory (`indices`), and products of matrices (`gemm`). Tests run operations on a device with `testing`.
//!
//! Inputs are strided views; outputs are contiguous, except for those of a copy. Everything runs on the
//! stream's thread and, for large tensors, on rayon's pool; results do not depend on its size.

pub(crate) mod float;
pub(crate) mod gemm;
pub(crate) mod indices;
#[cfg(any(test, not(feature = "cpu-gemm")))]
mod plain;
pub(crate) mod quantized;
pub(crate) mod real;
pub(crate) mod scalar;
pub(crate) mod strided;

pub(crate) use self::{
    scalar::Scalar,
    strided::{PARALLEL, TASK, Walk},
};

#[cfg(test)]
pub(crate) mod testing;
