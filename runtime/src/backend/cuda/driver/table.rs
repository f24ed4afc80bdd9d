//! The driver's entry points, looked up at run time.
//!
//! Our own table instead of bindings that abort when a symbol is missing: a machine without a
//! driver, or with one that is too old, gets a typed error, and newer entry points are optional.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void},
    sync::OnceLock,
};

use libloading::Library;

use super::types::{
    CUaccess, CUallocation, CUattributeValue, CUconditional, CUdeviceptr, CUedge, CUfillNode, CUinstantiate,
    CUkernelNode, CUlaunch, CUpool, CUresult, CUupdate, Handle,
};
use crate::{Error, Result};

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident: $symbol:literal ($($arg:ty),*);)*) => {
        /// Functions of `libcuda` that every supported driver has (CUDA 12.0, driver 525).
        #[derive(Debug)]
        pub(super) struct Table {
            $($(#[$doc])* pub(super) $name: unsafe extern "C" fn($($arg),*) -> CUresult,)*
            /// Since CUDA 12.3.
            pub(super) edges: Option<Edges>,
            pub(super) reading: Reading,
            /// Since CUDA 11.3, but later drivers may know them by newer names only.
            pub(super) waits: Option<CaptureDependencies>,
            /// Since CUDA 12.0.
            pub(super) updates: Option<Updates>,
            /// Since CUDA 12.0.
            pub(super) building: Option<Building>,
            /// Since CUDA 12.4.
            pub(super) conditionals: Option<Conditionals>,
            /// The offset and size of a kernel's parameter. Since CUDA 12.4.
            pub(super) parameter: Option<GetParameter>,
            /// Keeps the functions loaded.
            _library: Library,
        }

        impl Table {
            fn new(library: Library) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the symbol, if present, is the driver function of this name, whose
                        // signature NVIDIA never changes: changed functions get a suffix such as `_v2`.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($arg),*) -> CUresult>($symbol.to_bytes_with_nul())
                        };
                        *symbol.map_err(|_| format!("`{}`", $symbol.to_string_lossy()))?
                    },)*
                    edges: Edges::new(&library),
                    reading: Reading::new(&library),
                    waits: CaptureDependencies::new(&library),
                    updates: Updates::new(&library),
                    building: Building::new(&library),
                    conditionals: Conditionals::new(&library),
                    // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
                    parameter: unsafe { library.get::<GetParameter>(b"cuFuncGetParamInfo\0") }.ok().map(|f| *f),
                    _library: library,
                })
            }
        }
    };
}

table! {
    init: c"cuInit"(c_uint);
    error_name: c"cuGetErrorName"(CUresult, *mut *const c_char);
    error_string: c"cuGetErrorString"(CUresult, *mut *const c_char);
    device_count: c"cuDeviceGetCount"(*mut c_int);
    device_get: c"cuDeviceGet"(*mut c_int, c_int);
    device_name: c"cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_attribute: c"cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    primary_retain: c"cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    primary_release: c"cuDevicePrimaryCtxRelease_v2"(c_int);
    ctx_get: c"cuCtxGetCurrent"(*mut Handle);
    ctx_set: c"cuCtxSetCurrent"(Handle);
    ctx_synchronize: c"cuCtxSynchronize"();
    mem_info: c"cuMemGetInfo_v2"(*mut usize, *mut usize);
    stream_synchronize: c"cuStreamSynchronize"(Handle);
    stream_flags: c"cuStreamGetFlags"(Handle, *mut c_uint);
    stream_context: c"cuStreamGetCtx"(Handle, *mut Handle);
    stream_wait: c"cuStreamWaitEvent"(Handle, Handle, c_uint);
    stream_begin_capture: c"cuStreamBeginCapture_v2"(Handle, c_int);
    stream_end_capture: c"cuStreamEndCapture"(Handle, *mut Handle);
    stream_capturing: c"cuStreamIsCapturing"(Handle, *mut c_int);
    exchange_capture_mode: c"cuThreadExchangeStreamCaptureMode"(*mut c_int);
    event_create: c"cuEventCreate"(*mut Handle, c_uint);
    event_destroy: c"cuEventDestroy_v2"(Handle);
    event_record: c"cuEventRecord"(Handle, Handle);
    event_query: c"cuEventQuery"(Handle);
    event_synchronize: c"cuEventSynchronize"(Handle);
    event_elapsed: c"cuEventElapsedTime"(*mut f32, Handle, Handle);
    module_load: c"cuModuleLoadData"(*mut Handle, *const c_void);
    module_function: c"cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    func_attribute: c"cuFuncGetAttribute"(*mut c_int, c_int, Handle);
    func_set_attribute: c"cuFuncSetAttribute"(Handle, c_int, c_int);
    launch: c"cuLaunchKernelEx"(*const CUlaunch, Handle, *mut *mut c_void, *mut *mut c_void);
    driver_version: c"cuDriverGetVersion"(*mut c_int);
    mem_alloc: c"cuMemAlloc_v2"(*mut CUdeviceptr, usize);
    mem_free: c"cuMemFree_v2"(CUdeviceptr);
    pool_create: c"cuMemPoolCreate"(*mut Handle, *const CUpool);
    pool_destroy: c"cuMemPoolDestroy"(Handle);
    pool_trim: c"cuMemPoolTrimTo"(Handle, usize);
    pool_alloc: c"cuMemAllocFromPoolAsync"(*mut CUdeviceptr, usize, Handle, Handle);
    pool_free: c"cuMemFreeAsync"(CUdeviceptr, Handle);
    host_alloc: c"cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    host_free: c"cuMemFreeHost"(*mut c_void);
    host_device_pointer: c"cuMemHostGetDevicePointer_v2"(*mut CUdeviceptr, *mut c_void, c_uint);
    copy_to_device: c"cuMemcpyHtoDAsync_v2"(CUdeviceptr, *const c_void, usize, Handle);
    copy_to_host: c"cuMemcpyDtoHAsync_v2"(*mut c_void, CUdeviceptr, usize, Handle);
    fill: c"cuMemsetD8Async"(CUdeviceptr, u8, usize, Handle);
    address_reserve: c"cuMemAddressReserve"(*mut CUdeviceptr, usize, usize, CUdeviceptr, c_ulonglong);
    address_free: c"cuMemAddressFree"(CUdeviceptr, usize);
    granularity: c"cuMemGetAllocationGranularity"(*mut usize, *const CUallocation, c_int);
    physical_create: c"cuMemCreate"(*mut c_ulonglong, usize, *const CUallocation, c_ulonglong);
    physical_release: c"cuMemRelease"(c_ulonglong);
    map: c"cuMemMap"(CUdeviceptr, usize, usize, c_ulonglong, c_ulonglong);
    unmap: c"cuMemUnmap"(CUdeviceptr, usize);
    set_access: c"cuMemSetAccess"(CUdeviceptr, usize, *const CUaccess, usize);
    graph_nodes: c"cuGraphGetNodes"(Handle, *mut Handle, *mut usize);
    graph_destroy: c"cuGraphDestroy"(Handle);
    graph_instantiate: c"cuGraphInstantiateWithParams"(*mut Handle, Handle, *mut CUinstantiate);
    exec_launch: c"cuGraphLaunch"(Handle, Handle);
    exec_destroy: c"cuGraphExecDestroy"(Handle);
    node_type: c"cuGraphNodeGetType"(Handle, *mut c_int);
    node_fill: c"cuGraphMemsetNodeGetParams"(Handle, *mut CUfillNode);
    node_kernel: c"cuGraphKernelNodeGetParams_v2"(Handle, *mut CUkernelNode);
    exec_set_kernel: c"cuGraphExecKernelNodeSetParams_v2"(Handle, Handle, *const CUkernelNode);
}

type GetEdges = unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut CUedge, *mut usize) -> CUresult;
type ChangeEdges =
    unsafe extern "C" fn(Handle, *const Handle, *const Handle, *const CUedge, usize) -> CUresult;

/// Edges of graphs with their kinds.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) get: GetEdges,
    pub(super) add: ChangeEdges,
    pub(super) remove: ChangeEdges,
}

impl Edges {
    /// `None` with a driver that lacks one of them.
    fn new(library: &Library) -> Option<Self> {
        // SAFETY: the driver's function of this name, with the signature that its version suffix fixes.
        let get = unsafe { library.get::<GetEdges>(b"cuGraphGetEdges_v2\0") };
        // SAFETY: the driver's function of this name, with the signature that `_v2` fixes: lists of nodes with the data of edges.
        let add = unsafe { library.get::<ChangeEdges>(b"cuGraphAddDependencies_v2\0") };
        // SAFETY: the driver's function of this name, whose `_v2` has the parameters of the one that adds edges.
        let remove = unsafe { library.get::<ChangeEdges>(b"cuGraphRemoveDependencies_v2\0") };
        Some(Self { get: *get.ok()?, add: *add.ok()?, remove: *remove.ok()? })
    }
}

type GetName = unsafe extern "C" fn(*mut *const c_char, Handle) -> CUresult;
type GetPlainEdges = unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut usize) -> CUresult;

/// Functions that read graphs, as far as the driver has them.
#[derive(Debug)]
pub(super) struct Reading {
    /// The name of a `CUfunction`; since CUDA 12.3.
    pub(super) function_name: Option<GetName>,
    /// The name of a `CUkernel`; since CUDA 12.3.
    pub(super) kernel_name: Option<GetName>,
    /// Returns edges without the data that CUDA 12.3 added.
    pub(super) plain_edges: Option<GetPlainEdges>,
}

impl Reading {
    fn new(library: &Library) -> Self {
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let function = unsafe { library.get::<GetName>(b"cuFuncGetName\0") };
        // SAFETY: the driver's function of this name, whose parameters are those of `cuFuncGetName`, with a `CUkernel`.
        let kernel = unsafe { library.get::<GetName>(b"cuKernelGetName\0") };
        // SAFETY: the driver's function of this name, which without a suffix has the signature of CUDA 10: lists without data.
        let edges = unsafe { library.get::<GetPlainEdges>(b"cuGraphGetEdges\0") };
        Self {
            function_name: function.ok().map(|f| *f),
            kernel_name: kernel.ok().map(|f| *f),
            plain_edges: edges.ok().map(|f| *f),
        }
    }
}

type GetWaits = unsafe extern "C" fn(
    Handle,
    *mut c_int,
    *mut c_ulonglong,
    *mut Handle,
    *mut *const Handle,
    *mut usize,
) -> CUresult;
type SetWaits = unsafe extern "C" fn(Handle, *mut Handle, usize, c_uint) -> CUresult;

/// Functions for the dependencies of a capture's next node.
#[derive(Debug)]
pub(super) struct CaptureDependencies {
    pub(super) get: GetWaits,
    pub(super) set: SetWaits,
}

impl CaptureDependencies {
    /// `None` with a driver that lacks one of them.
    fn new(library: &Library) -> Option<Self> {
        // SAFETY: the driver's function of this name, with the signature that its version suffix fixes.
        let get = unsafe { library.get::<GetWaits>(b"cuStreamGetCaptureInfo_v2\0") };
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let set = unsafe { library.get::<SetWaits>(b"cuStreamUpdateCaptureDependencies\0") };
        Some(Self { get: *get.ok()?, set: *set.ok()? })
    }
}

type UpdateExec = unsafe extern "C" fn(Handle, Handle, *mut CUupdate) -> CUresult;
type GetAttribute = unsafe extern "C" fn(Handle, c_int, *mut CUattributeValue) -> CUresult;

/// Functions that update executables in place, and that read the properties which must be equal for that.
#[derive(Debug)]
pub(super) struct Updates {
    pub(super) update: UpdateExec,
    pub(super) attribute: GetAttribute,
}

impl Updates {
    /// `None` with a driver that lacks one of them.
    fn new(library: &Library) -> Option<Self> {
        // SAFETY: the driver's function of this name, with the signature that its version suffix fixes.
        let update = unsafe { library.get::<UpdateExec>(b"cuGraphExecUpdate_v2\0") };
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let attribute = unsafe { library.get::<GetAttribute>(b"cuGraphKernelNodeGetAttribute\0") };
        Some(Self { update: *update.ok()?, attribute: *attribute.ok()? })
    }
}

type GetParameter = unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> CUresult;

type CreateGraph = unsafe extern "C" fn(*mut Handle, c_uint) -> CUresult;
type AddKernel =
    unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const CUkernelNode) -> CUresult;

/// Graphs that are not captured.
#[derive(Debug)]
pub(super) struct Building {
    pub(super) create: CreateGraph,
    pub(super) add_kernel: AddKernel,
}

impl Building {
    /// `None` with a driver that lacks one of them.
    fn new(library: &Library) -> Option<Self> {
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let create = unsafe { library.get::<CreateGraph>(b"cuGraphCreate\0") };
        // SAFETY: the driver's function of this name, with the signature that its version suffix fixes.
        let add_kernel = unsafe { library.get::<AddKernel>(b"cuGraphAddKernelNode_v2\0") };
        Some(Self { create: *create.ok()?, add_kernel: *add_kernel.ok()? })
    }
}

type CreateConditional = unsafe extern "C" fn(*mut c_ulonglong, Handle, Handle, c_uint, c_uint) -> CUresult;
type AddConditional = unsafe extern "C" fn(
    *mut Handle,
    Handle,
    *const Handle,
    *const CUedge,
    usize,
    *mut CUconditional,
) -> CUresult;
type AddEmpty = unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize) -> CUresult;
type BeginCaptureTo =
    unsafe extern "C" fn(Handle, Handle, *const Handle, *const CUedge, usize, c_int) -> CUresult;

/// Conditional nodes, and captures into graphs that exist already.
#[derive(Debug)]
pub(super) struct Conditionals {
    pub(super) create: CreateConditional,
    pub(super) add: AddConditional,
    pub(super) add_empty: AddEmpty,
    pub(super) begin_capture_to: BeginCaptureTo,
}

impl Conditionals {
    /// `None` with a driver that lacks one of them.
    fn new(library: &Library) -> Option<Self> {
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let create = unsafe { library.get::<CreateConditional>(b"cuGraphConditionalHandleCreate\0") };
        // SAFETY: the driver's function of this name, with the signature that its version suffix fixes. Its last
        // parameter is a description of any node, of which that of a conditional one is a case.
        let add = unsafe { library.get::<AddConditional>(b"cuGraphAddNode_v2\0") };
        // SAFETY: the driver's function of this name, whose signature NVIDIA never changes.
        let add_empty = unsafe { library.get::<AddEmpty>(b"cuGraphAddEmptyNode\0") };
        // SAFETY: the driver's function of this name, which has had this signature since it was added in CUDA 12.3.
        let begin = unsafe { library.get::<BeginCaptureTo>(b"cuStreamBeginCaptureToGraph\0") };
        Some(Self {
            create: *create.ok()?,
            add: *add.ok()?,
            add_empty: *add_empty.ok()?,
            begin_capture_to: *begin.ok()?,
        })
    }
}

/// Names under which the driver is installed.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// The driver, loaded and initialised once per process.
///
/// # Errors
/// Returns [`Error::NoDevice`] if there is no driver, if it is too old, or if it finds no GPU.
pub(super) fn table() -> Result<&'static Table> {
    static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
    TABLE
        .get_or_init(open)
        .as_ref()
        .map_err(|reason| Error::NoDevice { device: "cuda".into(), reason: reason.clone() })
}

/// The newest major version of CUDA that the driver runs; `None` without a driver.
pub(crate) fn cuda_major() -> Option<u32> {
    // 13000 is 13.0.
    u32::try_from(cuda_version()?).ok().map(|version| version / 1000)
}

/// The newest version of CUDA that the driver runs, as 12040 for 12.4; `None` without a driver.
pub(crate) fn cuda_version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: one integer is written.
    let code = unsafe { (table().ok()?.driver_version)(&mut version) };
    (code == 0).then_some(version)
}

fn open() -> Result<Table, String> {
    let library = NAMES.iter().find_map(|name| {
        // SAFETY: loading the driver runs its initialisers, which are made for being loaded so.
        unsafe { Library::new(*name) }.ok()
    });
    let library = library.ok_or_else(|| {
        format!(
            "no NVIDIA driver: none of {} could be loaded; install the NVIDIA driver, or choose the CPU",
            NAMES.join(", ")
        )
    })?;
    let table = Table::new(library).map_err(|symbol| {
        format!("the NVIDIA driver is too old: it lacks {symbol}; version 525 (CUDA 12.0) or newer is needed")
    })?;
    // SAFETY: takes no pointer; may be called any number of times.
    let code = unsafe { (table.init)(0) };
    if code != 0 {
        let name = name_of(&table, code);
        return Err(format!(
            "cuInit said {name}; check `nvidia-smi`, the device files in /dev, and CUDA_VISIBLE_DEVICES"
        ));
    }
    Ok(table)
}

/// `CUDA_ERROR_…` with the driver's explanation.
pub(super) fn name_of(table: &Table, code: CUresult) -> String {
    let text = |call: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut at: *const c_char = std::ptr::null();
        // SAFETY: the driver stores the address of a static string, or null for unknown codes.
        let said = unsafe { call(code, &mut at) };
        if said != 0 || at.is_null() {
            return None;
        }
        // SAFETY: not null, so it is one of the driver's static, terminated strings.
        let text = unsafe { CStr::from_ptr(at) };
        Some(text.to_string_lossy().into_owned())
    };
    match (text(table.error_name), text(table.error_string)) {
        (Some(name), Some(reason)) => format!("{name} ({reason})"),
        (Some(name), None) => name,
        _ => format!("error {code}"),
    }
}
