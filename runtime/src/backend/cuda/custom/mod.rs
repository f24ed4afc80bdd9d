//! CUDA code of users: kernels from sources, and libraries.

mod kernel;
mod library;

pub use kernel::{CudaGrid, CudaKernel, CudaSource};
pub(crate) use library::launch as launch_library;
pub use library::{CudaCall, CudaLibrary};

use crate::backend::custom::Shapes;

/// Code of an operation for a GPU.
pub(crate) enum CudaCode {
    /// A kernel.
    Kernel(CudaKernel),
    /// A library.
    Library(std::sync::Arc<dyn CudaLibrary>),
}

impl CudaCode {
    /// Bytes of workspace that a launch wants.
    pub(crate) fn workspace(&self, shapes: &Shapes<'_>) -> u64 {
        match self {
            Self::Kernel(kernel) => kernel.workspace_bytes(shapes),
            Self::Library(library) => library.workspace(shapes),
        }
    }
}
