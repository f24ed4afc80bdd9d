//! CUDA code of users, as an operation launches it. What users promise of it is on the types in `backend/cuda/custom`.

pub(super) mod kernel;
pub(super) mod library;

use std::sync::Arc;

use crate::backend::cuda::custom::{CudaKernel, CudaLibrary};

/// Code of an operation for a GPU.
pub(crate) enum CudaCode {
    /// A kernel.
    Kernel(CudaKernel),
    /// A library.
    Library(Arc<dyn CudaLibrary>),
}
