//! Promises of users about their CUDA code: kernels from sources, and libraries. `custom/cuda` launches them.

mod grid;
mod kernel;
mod library;

pub use grid::CudaGrid;
pub use kernel::{CudaKernel, CudaSource};
pub use library::{CudaCall, CudaLaunch, CudaLibrary, LibraryError};
