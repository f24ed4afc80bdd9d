//! Kernels of users: source or code, launch geometry, parameters.

use std::{borrow::Cow, fmt, fs, path::Path};

use smallvec::SmallVec;

use super::grid::CudaGrid;
use crate::{
    Error, Result,
    backend::{
        Launch, Operation as _, View,
        cuda::kernels::{Kernel, SourceFile, Submit},
        custom::{Argument, CustomOperation, Shapes},
    },
    base::rank::MAX_RANK,
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
            why: error.to_string(),
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

    pub(crate) fn workspace_bytes(&self, shapes: &Shapes<'_>) -> u64 {
        self.workspace.as_ref().map_or(0, |bytes| bytes(shapes))
    }

    pub(crate) fn launch(&self, gpu: &mut dyn Submit, op: &CustomOperation, launch: &Launch) -> Result<()> {
        let name = op.name();
        let grid = op.guarded(|| (self.grid)(&op.shapes(&launch.inputs, &launch.outputs)))?;
        grid.check(name)?;
        let packed: SmallVec<[Packed; 8]> = op.arguments().iter().map(|a| pack(a, op, launch)).collect();
        let list: SmallVec<[&[u8]; 8]> = packed.iter().map(Packed::bytes).collect();
        let kernel = Kernel::plain(self.source, self.entry);
        let sizes = gpu.parameter_sizes(kernel, grid).map_err(|error| self.refused(name, grid, error))?;
        if let Some(sizes) = sizes {
            self.check_parameters(name, sizes, op.arguments(), &list)?;
        }
        let submitted = gpu.submit_list(kernel, grid, &list);
        submitted.map_err(|error| self.refused(name, grid, error))
    }

    /// Refuses arguments that are not as many or as large as the parameters of the kernel.
    fn check_parameters(
        &self,
        op: &'static str,
        sizes: &[usize],
        arguments: &[Argument],
        given: &[&[u8]],
    ) -> Result<()> {
        let entry = self.entry;
        if sizes.len() != given.len() {
            let why = format!(
                "`{entry}` has {}, and the call names {}; it names one argument for each parameter, in their order",
                counted(sizes.len(), "parameter"),
                counted(given.len(), "argument"),
            );
            return Err(Error::Argument { op, why });
        }
        let wrong = sizes.iter().zip(given).position(|(&size, given)| size != given.len());
        let Some(at) = wrong else { return Ok(()) };
        let why = format!(
            "parameter {at} (from 0) of `{entry}` has {}, and the call passes {} there, of {}; \
             name the arguments in the order of the parameters, or change its type",
            counted(sizes[at], "byte"),
            arguments[at].described(),
            counted(given[at].len(), "byte"),
        );
        Err(Error::Argument { op, why })
    }

    /// Says what is wrong with the kernel, if that is why it could not be launched.
    fn refused(&self, op: &'static str, grid: CudaGrid, error: Error) -> Error {
        let Error::Device { call, why, .. } = &error else { return error };
        let why = match *call {
            "compile" => return Error::Compile { op, log: why.clone() },
            "cuModuleLoadData" => format!("the driver does not load its code: {why}"),
            "cuModuleGetFunction" => {
                format!("its source has no function `{}`; declare it `extern \"C\" __global__`", self.entry)
            }
            "cuFuncSetAttribute" => {
                format!("a block cannot have {} bytes of shared memory: {why}", grid.shared_bytes)
            }
            "cuLaunchKernelEx" => {
                format!("the device cannot run blocks of threads {:?}: {why}", grid.threads)
            }
            _ => return error,
        };
        Error::Argument { op, why }
    }
}

impl fmt::Debug for CudaKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaKernel").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Mirrors `graphable_view` of `graphable.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct PlainView {
    data: u64,
    rank: u64,
    shape: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}

/// `1 byte`, `2 bytes`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// One parameter.
enum Packed {
    Word([u8; 8], usize),
    View(PlainView),
}

impl Packed {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Word(bytes, len) => &bytes[..*len],
            Self::View(view) => bytemuck::bytes_of(view),
        }
    }
}

fn pack(argument: &Argument, op: &CustomOperation, launch: &Launch) -> Packed {
    let address = |addr: u64| Packed::Word(addr.to_ne_bytes(), 8);
    let of = |view: Option<&View>| address(view.map_or(0, |view| view.addr));
    match *argument {
        Argument::Input(i) => of(launch.inputs.get(usize::from(i))),
        Argument::View(i) => {
            Packed::View(launch.inputs.get(usize::from(i)).map_or_else(bytemuck::Zeroable::zeroed, plain))
        }
        Argument::Output(i) => of(launch.outputs.get(usize::from(i))),
        Argument::State(i) => of(launch.outputs.get(op.made() + usize::from(i))),
        Argument::Value { bytes, of } => Packed::Word(bytes, of.bytes()),
        Argument::RealSize(None) => address(0),
        Argument::RealSize(Some(i)) => of(launch.inputs.get(op.operands() + usize::from(i))),
        Argument::Workspace => address(launch.workspace),
    }
}

fn plain(view: &View) -> PlainView {
    let mut out = PlainView {
        data: view.addr,
        rank: view.layout.rank() as u64,
        shape: [1; MAX_RANK],
        strides: [0; MAX_RANK],
    };
    for (to, &n) in out.shape.iter_mut().zip(view.layout.shape()) {
        *to = n as u64;
    }
    for (to, &n) in out.strides.iter_mut().zip(view.layout.strides()) {
        *to = n as u64;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_says_of_a_kernel_names_the_operation() {
        // SAFETY: it is never launched.
        let kernel = unsafe {
            CudaKernel::new(CudaSource::Cuda("".into()), "missing", |_| CudaGrid::for_elements(1, 1))
        };
        let grid = CudaGrid::for_elements(1, 32).shared_bytes(1 << 20);
        let of = |call| Error::Device { device: "a GPU".into(), call, why: "no".into() };
        assert!(matches!(
            kernel.refused("mine", grid, of("compile")),
            Error::Compile { op: "mine", log } if log == "no"
        ));
        for (call, why) in [
            ("cuModuleLoadData", "mine: the driver does not load its code: no"),
            (
                "cuModuleGetFunction",
                "mine: its source has no function `missing`; declare it `extern \"C\" __global__`",
            ),
            ("cuFuncSetAttribute", "mine: a block cannot have 1048576 bytes of shared memory: no"),
            ("cuLaunchKernelEx", "mine: the device cannot run blocks of threads [32, 1, 1]: no"),
        ] {
            assert_eq!(kernel.refused("mine", grid, of(call)).to_string(), why);
        }
        assert!(matches!(kernel.refused("mine", grid, of("cuMemcpy")), Error::Device { .. }));
    }

    #[test]
    fn arguments_must_be_as_many_and_as_large_as_the_parameters() {
        // SAFETY: it is never launched.
        let kernel =
            unsafe { CudaKernel::new(CudaSource::Cuda("".into()), "k", |_| CudaGrid::for_elements(1, 1)) };
        let (input, number) = (Argument::Input(0), Argument::value(7u32));
        let check = |sizes: &[usize], arguments: &[Argument], given: &[usize]| {
            let bytes: Vec<&[u8]> = given.iter().map(|&n| &[0; 128][..n]).collect();
            kernel.check_parameters("mine", sizes, arguments, &bytes).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[8, 4, 8], &[input, number, Argument::Output(0)], &[8, 4, 8]), Ok(()));
        assert_eq!(check(&[], &[], &[]), Ok(()));
        assert_eq!(
            check(&[8], &[input, number], &[8, 4]).unwrap_err(),
            "mine: `k` has 1 parameter, and the call names 2 arguments; it names one argument for each parameter, \
             in their order"
        );
        assert_eq!(
            check(&[8, 8], &[input, number], &[8, 4]).unwrap_err(),
            "mine: parameter 1 (from 0) of `k` has 8 bytes, and the call passes a `u32` there, of 4 bytes; \
             name the arguments in the order of the parameters, or change its type"
        );
        let view = Argument::View(0);
        let error = check(&[8], &[view], &[size_of::<PlainView>()]).unwrap_err();
        assert!(error.contains("passes a `graphable_view` there, of 112 bytes"), "{error}");
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        for name in ["missing.cu", "missing.ptx", "missing.cubin"] {
            let error = CudaSource::file(name).unwrap_err();
            assert!(matches!(&error, Error::File { path, .. } if path == name), "{error}");
        }
    }
}
