//! NVIDIA GPUs, through CUDA graphs.
#![allow(dead_code)] // While it is being built.

mod blas;
mod kernels;
mod props;

pub(crate) use props::Props;
