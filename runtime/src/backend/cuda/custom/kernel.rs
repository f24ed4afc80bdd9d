//! Kernels of users: source or code, launch geometry, parameters.

use std::{borrow::Cow, fmt, fs, path::Path};

use smallvec::SmallVec;

use crate::{
    Error, Result,
    backend::{
        Launch, View,
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

/// The number of blocks, and of threads in each, with which a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaGrid {
    /// Blocks along x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl CudaGrid {
    /// Returns a grid without dynamic shared memory.
    pub fn new(blocks: [u32; 3], threads: [u32; 3]) -> Self {
        Self { blocks, threads, shared_bytes: 0 }
    }

    /// Returns enough blocks of `threads` threads, along x, for one thread for each of `count` elements; at most 2³¹ - 1
    /// blocks.
    pub fn for_elements(count: usize, threads: u32) -> Self {
        let blocks = (count as u64).div_ceil(u64::from(threads.max(1))).clamp(1, i32::MAX as u64);
        Self::new([blocks as u32, 1, 1], [threads, 1, 1])
    }

    /// Returns the grid with so much dynamic shared memory.
    #[must_use]
    pub fn shared_bytes(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }

    fn check(&self, op: &'static str) -> Result<()> {
        let threads: u64 = self.threads.iter().map(|&n| u64::from(n)).product();
        if self.blocks.contains(&0) || threads == 0 || threads > 1024 {
            let why = format!(
                "blocks {:?} of threads {:?}; no size may be 0, and a block has at most 1024 threads",
                self.blocks, self.threads
            );
            return Err(Error::Argument { op, why });
        }
        Ok(())
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
        let name = op.definition.name;
        let grid = op.guarded(|| (self.grid)(&op.shapes(&launch.inputs, &launch.outputs)))?;
        grid.check(name)?;
        let packed: SmallVec<[Packed; 8]> = op.arguments.iter().map(|a| pack(a, op, launch)).collect();
        let list: SmallVec<[&[u8]; 8]> = packed.iter().map(Packed::bytes).collect();
        let submitted = gpu.submit_list(Kernel::plain(self.source, self.entry), grid, &list);
        submitted.map_err(|error| match error {
            Error::Device { call: "compile", why, .. } => Error::Compile { op: name, log: why },
            other => other,
        })
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
        Argument::State(i) => of(launch.outputs.get(op.made + usize::from(i))),
        Argument::Value { bytes, of } => Packed::Word(bytes, of.bytes()),
        Argument::RealSize(None) => address(0),
        Argument::RealSize(Some(i)) => of(launch.inputs.get(op.operands + usize::from(i))),
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
