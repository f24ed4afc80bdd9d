//! CUDA code of users: kernels from sources, and libraries.

mod grid;
mod kernel;
mod library;

pub use grid::CudaGrid;
pub use kernel::{CudaKernel, CudaSource};
pub use library::{CudaCall, CudaLaunch, CudaLibrary, LibraryError};
pub(crate) use library::{launch as launch_library, prepare as prepare_library};

/// Code of an operation for a GPU.
pub(crate) enum CudaCode {
    /// A kernel.
    Kernel(CudaKernel),
    /// A library.
    Library(std::sync::Arc<dyn CudaLibrary>),
}
