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

/// `cublasLtMatmulAlgo_t`: opaque, and valid for one version of the library. "This structure can
/// be trivially serialized and later restored for use with the same version of cuBLAS library".
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Algo(pub(crate) [u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heuristic {
    /// The algorithm.
    pub(super) algo: Algo,
    /// Bytes that it needs.
    pub(super) workspace: usize,
    /// Success, or the rest is not valid.
    pub(super) state: Status,
    /// The number of waves; 1.0 means that the kernel fills the device.
    pub(super) waves: f32,
    reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Heuristic>() == 96);

// All are in every version since 11.4, with the same signatures in cublasLt.h of CUDA 11, 12 and 13.
functions! {
    install "install cuBLASLt of CUDA 12 or 13, or name one by GRAPHABLE_CUBLASLT";
    create: c"cublasLtCreate"(*mut Raw) -> Status;
    version: c"cublasLtGetVersion"() -> usize;
    status_name: c"cublasLtGetStatusName"(Status) -> *const c_char;
    desc_create: c"cublasLtMatmulDescCreate"(*mut Raw, c_int, c_int) -> Status;
    desc_destroy: c"cublasLtMatmulDescDestroy"(Raw) -> Status;
    desc_set: c"cublasLtMatmulDescSetAttribute"(Raw, c_int, *const c_void, usize) -> Status;
    layout_create: c"cublasLtMatrixLayoutCreate"(*mut Raw, c_int, u64, u64, i64) -> Status;
    layout_destroy: c"cublasLtMatrixLayoutDestroy"(Raw) -> Status;
    layout_set: c"cublasLtMatrixLayoutSetAttribute"(Raw, c_int, *const c_void, usize) -> Status;
    preference_create: c"cublasLtMatmulPreferenceCreate"(*mut Raw) -> Status;
    preference_destroy: c"cublasLtMatmulPreferenceDestroy"(Raw) -> Status;
    preference_set: c"cublasLtMatmulPreferenceSetAttribute"(Raw, c_int, *const c_void, usize) -> Status;
    heuristic: c"cublasLtMatmulAlgoGetHeuristic"(
        Raw, Raw, Raw, Raw, Raw, Raw, Raw, c_int, *mut Heuristic, *mut c_int
    ) -> Status;
    check: c"cublasLtMatmulAlgoCheck"(
        Raw, Raw, Raw, Raw, Raw, Raw, *const Algo, *mut Heuristic
    ) -> Status;
    matmul: c"cublasLtMatmul"(
        Raw, Raw, *const c_void, *const c_void, Raw, *const c_void, Raw, *const c_void, *const c_void, Raw,
        *mut c_void, Raw, *const Algo, *mut c_void, usize, Raw
    ) -> Status;
}

const VARIABLE: &str = "GRAPHABLE_CUBLASLT";

/// The library to search for.
pub(super) const WANTED: Wanted = Wanted {
    variable: VARIABLE,
    names: &[
        "libcublasLt.so.13",
        "libcublasLt.so.12",
        "libcublasLt.so",
        "cublasLt64_13.dll",
        "cublasLt64_12.dll",
    ],
    wheels: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
    remedy: "install cuBLAS of CUDA 12 or 13 (`pip install nvidia-cublas`, or the CUDA toolkit), or set \
             GRAPHABLE_CUBLASLT to libcublasLt.so or its folder; a driver before 580 needs `nvidia-cublas-cu12`",
};

/// The library, loaded once per process.
///
/// # Errors
/// Returns [`Error::NoDevice`] if there is none, or it lacks a function.
pub(super) fn table() -> Result<&'static Table> {
    static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
    let found = TABLE.get_or_init(|| open(&search::places(&WANTED, &search::environment)));
    found.as_ref().map_err(|reason| Error::NoDevice { device: "cuBLASLt".into(), reason: reason.clone() })
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
            // SAFETY: takes nothing; 130001 is 13.0.1, and 120805 is 12.8.5.
            let major = u32::try_from(unsafe { (table.version)() } / 10_000).unwrap_or(0);
            search::too_new(major, driver).map_or(Ok(table), Err)
        },
    )
}

/// Returns `CUBLAS_STATUS_…`.
pub(super) fn name_of(table: &Table, status: Status) -> String {
    // SAFETY: the function takes any number and returns a static string, or null.
    unsafe { functions::name_of(table.status_name, status) }
}
