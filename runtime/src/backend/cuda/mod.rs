//! NVIDIA GPUs, through CUDA graphs.
#![allow(dead_code)] // While it is being built.

mod kernels;
mod props;

pub(crate) use props::Props;
