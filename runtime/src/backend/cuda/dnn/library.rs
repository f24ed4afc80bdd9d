//! The library's entry points, looked up at run time.

use std::{
    ffi::{c_char, c_int, c_void},
    path::PathBuf,
    sync::OnceLock,
};

use crate::{
    Error, Result,
    backend::cuda::{
        driver,
        functions::{self, Raw, Status, functions},
        search::{self, Wanted},
    },
};

/// `cudnnConvolutionFwdAlgoPerf_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heuristic {
    /// `cudnnConvolutionFwdAlgo_t`.
    pub(super) algo: c_int,
    /// Success, or the algorithm cannot be used.
    pub(super) status: Status,
    /// The expected time; negative if there is none.
    pub(super) time: f32,
    /// Bytes of workspace.
    pub(super) workspace: usize,
    /// 1 if its results are the same in every run.
    pub(super) deterministic: c_int,
    /// `cudnnMathType_t`.
    pub(super) math: c_int,
    reserved: [c_int; 3],
}

const _: () = assert!(size_of::<Heuristic>() == 48);

// All are in every version 9, the only one that is loaded, with the same signatures in cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h.
functions! {
    install "install cuDNN 9, or name one by GRAPHABLE_CUDNN";
    version: c"cudnnGetVersion"() -> usize;
    cuda_version: c"cudnnGetCudartVersion"() -> usize;
    status_name: c"cudnnGetErrorString"(Status) -> *const c_char;
    create: c"cudnnCreate"(*mut Raw) -> Status;
    set_stream: c"cudnnSetStream"(Raw, Raw) -> Status;
    tensor_create: c"cudnnCreateTensorDescriptor"(*mut Raw) -> Status;
    tensor_destroy: c"cudnnDestroyTensorDescriptor"(Raw) -> Status;
    tensor_set: c"cudnnSetTensor4dDescriptor"(Raw, c_int, c_int, c_int, c_int, c_int, c_int) -> Status;
    filter_create: c"cudnnCreateFilterDescriptor"(*mut Raw) -> Status;
    filter_destroy: c"cudnnDestroyFilterDescriptor"(Raw) -> Status;
    filter_set: c"cudnnSetFilter4dDescriptor"(Raw, c_int, c_int, c_int, c_int, c_int, c_int) -> Status;
    convolution_create: c"cudnnCreateConvolutionDescriptor"(*mut Raw) -> Status;
    convolution_destroy: c"cudnnDestroyConvolutionDescriptor"(Raw) -> Status;
    convolution_set: c"cudnnSetConvolution2dDescriptor"(
        Raw, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int
    ) -> Status;
    set_groups: c"cudnnSetConvolutionGroupCount"(Raw, c_int) -> Status;
    set_math: c"cudnnSetConvolutionMathType"(Raw, c_int) -> Status;
    heuristics: c"cudnnGetConvolutionForwardAlgorithm_v7"(
        Raw, Raw, Raw, Raw, Raw, c_int, *mut c_int, *mut Heuristic
    ) -> Status;
    forward: c"cudnnConvolutionForward"(
        Raw, *const c_void, Raw, *const c_void, Raw, *const c_void, Raw, c_int, *mut c_void, usize, *const c_void,
        Raw, *mut c_void
    ) -> Status;
}

const VARIABLE: &str = "GRAPHABLE_CUDNN";

/// The library to search for.
pub(super) const WANTED: Wanted = Wanted {
    variable: VARIABLE,
    names: &["libcudnn.so.9", "cudnn64_9.dll"],
    wheels: &["nvidia/cudnn/lib", "nvidia/cudnn/bin"],
    remedy: "install cuDNN 9 (`pip install nvidia-cudnn-cu13`, or NVIDIA's packages), or set GRAPHABLE_CUDNN to \
             libcudnn.so.9 or its folder; a driver before 580 needs `nvidia-cudnn-cu12`",
};

/// The library, loaded once per process.
///
/// # Errors
/// Returns [`Error::NoDevice`] if there is none, or it lacks a function.
pub(super) fn table() -> Result<&'static Table> {
    static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
    let found = TABLE.get_or_init(|| open(&search::places(&WANTED, &search::environment)));
    found.as_ref().map_err(|reason| Error::NoDevice { device: "cuDNN".into(), reason: reason.clone() })
}

/// Loads the first library of `places` that there is.
pub(super) fn open(places: &[PathBuf]) -> Result<Table, String> {
    let driver = driver::cuda_major();
    search::load(
        &WANTED,
        places,
        |_| None,
        |found| {
            let table = Table::new(found.library, found.path.display().to_string())?;
            // SAFETY: takes nothing; 90100 is 9.1.0.
            let version = unsafe { (table.version)() };
            if version / 10_000 != 9 {
                return Err(format!(
                    "it is version {version}, and its interface is known for version 9 only"
                ));
            }
            // SAFETY: takes nothing; 13000 is 13.0.
            let major = u32::try_from(unsafe { (table.cuda_version)() } / 1000).unwrap_or(0);
            search::too_new(major, driver).map_or(Ok(table), Err)
        },
    )
}

/// Returns `CUDNN_STATUS_…`.
pub(super) fn name_of(table: &Table, status: Status) -> String {
    // SAFETY: the function takes any number and returns a static string, or null.
    unsafe { functions::name_of(table.status_name, status) }
}
