//! Kernels of users: source or code, launch geometry, parameters.

use std::{borrow::Cow, fmt, fs, path::Path};

use super::grid::CudaGrid;
use crate::{
    Error, Result,
    backend::{
        cuda::kernels::{Kernel, SourceFile},
        shapes::Shapes,
    },
};

/// The source of a kernel's code.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CudaSource {
    /// CUDA C++, compiled by NVRTC at the first launch and stored in the cache on disk. It may include
    /// `graphable.cuh`.
    Cuda(Cow<'static, str>),
    /// PTX, which the driver compiles.
    Ptx(Cow<'static, str>),
    /// Machine code for the device.
    Cubin(Cow<'static, [u8]>),
}

impl CudaSource {
    /// Reads a file: `.ptx` and `.cubin` files contain PTX and cubin, respectively; any other file is CUDA
    /// C++.
    ///
    /// # Errors
    /// Returns [`Error::File`] if it cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: &dyn fmt::Display| Error::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let text = || fs::read_to_string(path).map(Cow::Owned).map_err(|error| failed(&error));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ptx") => text().map(Self::Ptx),
            Some("cubin") => {
                fs::read(path).map(|code| Self::Cubin(code.into())).map_err(|error| failed(&error))
            }
            _ => text().map(Self::Cuda),
        }
    }
}

/// A function of the shapes of a launch.
type OfShapes<T> = Box<dyn Fn(&Shapes<'_>) -> T + Send + Sync>;

/// A kernel of a source, and how it is launched.
pub struct CudaKernel {
    source: &'static SourceFile,
    entry: &'static str,
    grid: OfShapes<CudaGrid>,
    workspace: Option<OfShapes<u64>>,
}

impl CudaKernel {
    /// Names the function `entry` of `source`, declared `extern "C" __global__`, and how many blocks and threads it needs
    /// for operands of which sizes. Sources are kept for the life of the process, as their code on the device is; equal
    /// ones are kept once.
    ///
    /// # Safety
    /// Whenever an operation with this kernel is launched:
    /// - the parameters of `entry` are those that the call passes, in this order: a pointer for each input, output, state,
    ///   real size and workspace (a real size may be null), a `graphable_view` for each view, and a value of the same size
    ///   for each scalar and size;
    /// - it reads no memory but its inputs, states, real sizes and workspace, and writes none but its outputs, states and
    ///   workspace, each within the sizes that the call gave;
    /// - it has done so when the last of its threads ends: it launches nothing else, and keeps no pointer;
    /// - its code runs on the device: PTX and machine code are loaded as they are.
    ///
    /// With a driver since CUDA 12.4, a launch whose arguments are not as many as the parameters, or not of their sizes, is
    /// [`Error::Argument`]. Older drivers cannot say, and such a launch is then undefined; so is, with any driver, one whose
    /// parameters have the right sizes and another meaning.
    pub unsafe fn new(
        source: CudaSource,
        entry: &'static str,
        grid: impl Fn(&Shapes<'_>) -> CudaGrid + Send + Sync + 'static,
    ) -> Self {
        let source = match source {
            CudaSource::Cuda(text) => SourceFile::interned(entry, text.into_owned().into_bytes(), false),
            CudaSource::Ptx(text) => {
                // The driver reads it to a zero byte.
                let mut code = text.into_owned().into_bytes();
                code.push(0);
                SourceFile::interned(entry, code, true)
            }
            CudaSource::Cubin(code) => SourceFile::interned(entry, code.into_owned(), true),
        };
        Self { source, entry, grid: Box::new(grid), workspace: None }
    }

    /// Returns the kernel with a workspace of so many bytes, for operands of which sizes. It is aligned to 256 bytes and
    /// holds anything; the call passes its address with `workspace()`.
    #[must_use]
    pub fn workspace(mut self, bytes: impl Fn(&Shapes<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.workspace = Some(Box::new(bytes));
        self
    }

    /// Returns the function, to be submitted.
    pub(crate) fn function(&self) -> Kernel {
        Kernel::plain(self.source, self.entry)
    }

    /// Returns the name of the function.
    pub(crate) fn entry(&self) -> &'static str {
        self.entry
    }

    /// Returns how it is launched for operands of these sizes. The code is the user's, and may panic.
    pub(crate) fn grid(&self, shapes: &Shapes<'_>) -> CudaGrid {
        (self.grid)(shapes)
    }

    /// Returns the bytes of its workspace for operands of these sizes. The code is the user's, and may panic.
    pub(crate) fn workspace_bytes(&self, shapes: &Shapes<'_>) -> u64 {
        self.workspace.as_ref().map_or(0, |bytes| bytes(shapes))
    }
}

impl fmt::Debug for CudaKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaKernel").field("entry", &self.entry).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_read_are_named() {
        for name in ["missing.cu", "missing.ptx", "missing.cubin"] {
            let error = CudaSource::file(name).unwrap_err();
            assert!(matches!(&error, Error::File { path, .. } if path == name), "{error}");
        }
    }
}
