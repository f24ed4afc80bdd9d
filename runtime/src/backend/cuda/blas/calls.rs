//! The library's handle and descriptors, each with its owner.

use std::{
    ffi::{c_int, c_void},
    sync::{Mutex, PoisonError},
};

use super::{
    key::{Key, Side},
    library::{Algo, Heuristic, Table, name_of, table},
};
use crate::{
    DType, Error, Result,
    backend::{
        View,
        cuda::functions::{Owned, Raw, Status},
    },
};

/// Most bytes of workspace that an algorithm may ask for.
pub(crate) const WORKSPACE: u64 = 32 << 20;

// Numbers of cublasLt.h, cublas_api.h and library_types.h.
const COMPUTE_32F: c_int = 68;
const COMPUTE_32F_FAST_TF32: c_int = 77;
const R_32F: c_int = 0;
const R_16F: c_int = 2;
const R_16BF: c_int = 14;
const OP_T: c_int = 1;
const EPILOGUE_BIAS: u32 = 4;
const DESC_TRANSA: c_int = 3;
const DESC_TRANSB: c_int = 4;
const DESC_EPILOGUE: c_int = 7;
const DESC_BIAS_POINTER: c_int = 8;
const LAYOUT_BATCH_COUNT: c_int = 5;
const LAYOUT_BATCH_STRIDE: c_int = 6;
const PREF_WORKSPACE: c_int = 1;
const PREF_REDUCTION_MASK: c_int = 3;
const PREF_ALIGN: [c_int; 4] = [5, 6, 7, 8]; // Of A, B, C, D.
// Partial sums in f32, added in a fixed order: neither in the result's own type, nor in place,
// where the order is not fixed.
const REDUCTION_COMPUTE_TYPE: u32 = 2;
// Partial sums in the result's own type, added in a fixed order.
const REDUCTION_OUTPUT_TYPE: u32 = 4;

fn check(table: &Table, call: &'static str, status: Status) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Error::Device { device: "cuBLASLt".into(), call, reason: name_of(table, status) })
}

fn data_type(dtype: DType) -> c_int {
    match dtype {
        DType::F16 => R_16F,
        DType::Bf16 => R_16BF,
        // `Key::of` lets no other through.
        _ => R_32F,
    }
}

/// The type in which products are computed: with it, TF32 is allowed for f32 and nothing else.
pub(super) fn compute_type(key: &Key) -> c_int {
    if key.numerics.tf32 { COMPUTE_32F_FAST_TF32 } else { COMPUTE_32F }
}

/// The ways in which the partial sums of a product may be added.
pub(super) fn reductions(key: &Key) -> u32 {
    match key.numerics.reduced_precision_reduction {
        true => REDUCTION_COMPUTE_TYPE | REDUCTION_OUTPUT_TYPE,
        false => REDUCTION_COMPUTE_TYPE,
    }
}

type Set = unsafe extern "C" fn(Raw, c_int, *const c_void, usize) -> Status;

impl Owned {
    fn set<T: bytemuck::Pod>(&self, table: &Table, set: Set, attribute: c_int, value: T) -> Result<()> {
        let at = std::ptr::from_ref(&value).cast();
        // SAFETY: `raw` is alive and of the kind that `set` takes (each caller pairs them); `at` shows
        // `size_of::<T>()` bytes, which the library compares with the attribute's size and copies.
        let status = unsafe { set(self.raw(), attribute, at, size_of::<T>()) };
        check(table, "setting an attribute", status)
    }
}

/// The descriptors of one product.
#[derive(Debug)]
pub(super) struct Descriptors {
    desc: Owned,
    a: Owned,
    b: Owned,
    y: Owned,
    bias: bool,
}

/// Memory that a product needs while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workspace {
    pub(super) addr: u64,
    pub(super) bytes: u64,
}

/// Addresses of a product's operands on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// The left side.
    pub(crate) a: u64,
    /// The right side.
    pub(crate) b: u64,
    /// The bias; 0 without one.
    pub(crate) bias: u64,
    /// The result.
    pub(crate) y: u64,
}

impl Addresses {
    /// Returns the addresses of a launch.
    pub(crate) fn of(inputs: &[View], output: &View) -> Self {
        let at = |i: usize| inputs.get(i).map_or(0, |view| view.addr);
        Self { a: at(0), b: at(1), bias: at(2), y: output.addr }
    }
}

/// The library with its handle, for the context that was current when it was made.
#[derive(Debug)]
pub(super) struct Lt {
    table: &'static Table,
    handle: Handle,
}

/// The library's handle, one for each context and process. It is never destroyed: that, as making one,
/// waits for the whole device, which would invalidate captures on other threads.
#[derive(Clone, Copy, Debug)]
struct Handle {
    raw: Raw,
}

// SAFETY: cuBLASLt ties a handle to the context in which it was made, not to a thread (cuBLAS documentation, "Using the
// cuBLASLt API"). It is never destroyed, so it is valid wherever it goes.
unsafe impl Send for Handle {}
// SAFETY: shared references only copy the handle, which several threads may use at the same time (cuBLAS documentation, "Thread
// Safety"); it holds no mutable state of ours.
unsafe impl Sync for Handle {}

/// By the address of the context.
static HANDLES: Mutex<Vec<(usize, Handle)>> = Mutex::new(Vec::new());

impl Lt {
    /// Loads the library and makes a handle in `context`, which is current, unless there is one.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`] without the library; [`Error::Device`] if it refuses the device.
    pub(super) fn new(context: usize) -> Result<Self> {
        let table = table()?;
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, handle)) = handles.iter().find(|(of, _)| *of == context) {
            return Ok(Self { table, handle });
        }
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: writes one handle to `raw`.
        let status = unsafe { (table.create)(&mut raw) };
        check(table, "cublasLtCreate", status)?;
        let handle = Handle { raw };
        handles.push((context, handle));
        Ok(Self { table, handle })
    }

    /// The library's version, such as 130002, and where it was found.
    pub(super) fn version(&self) -> (usize, &str) {
        // SAFETY: takes nothing.
        let version = unsafe { (self.table.version)() };
        (version, &self.table.path)
    }

    fn layout(&self, key: &Key, rows: u64, cols: u64, side: Side) -> Result<Owned> {
        let mut raw: Raw = std::ptr::null_mut();
        let (rows, cols) = if side.transposed { (cols, rows) } else { (rows, cols) };
        // SAFETY: writes one descriptor to `raw`.
        let status =
            unsafe { (self.table.layout_create)(&mut raw, data_type(key.dtype), rows, cols, side.ld) };
        check(self.table, "cublasLtMatrixLayoutCreate", status)?;
        // SAFETY: made just now, for us, as plain memory without thread-local state, with the function that ends it.
        let layout = unsafe { Owned::new(raw, self.table.layout_destroy) };
        if key.batch != 1 {
            layout.set(self.table, self.table.layout_set, LAYOUT_BATCH_COUNT, key.batch)?;
            layout.set(self.table, self.table.layout_set, LAYOUT_BATCH_STRIDE, side.stride)?;
        }
        Ok(layout)
    }

    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) fn describe(&self, key: &Key) -> Result<Descriptors> {
        let table = self.table;
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: writes one descriptor to `raw`.
        let status = unsafe { (table.desc_create)(&mut raw, compute_type(key), R_32F) };
        check(table, "cublasLtMatmulDescCreate", status)?;
        // SAFETY: made just now, for us, as plain memory without thread-local state, with the function that ends it.
        let desc = unsafe { Owned::new(raw, table.desc_destroy) };
        // Its A is our right side.
        if key.b.transposed {
            desc.set(table, table.desc_set, DESC_TRANSA, OP_T)?;
        }
        if key.a.transposed {
            desc.set(table, table.desc_set, DESC_TRANSB, OP_T)?;
        }
        if key.bias {
            desc.set(table, table.desc_set, DESC_EPILOGUE, EPILOGUE_BIAS)?;
            // The heuristics read its alignment from it; `run` replaces it.
            desc.set(table, table.desc_set, DESC_BIAS_POINTER, u64::from(key.align[2]))?;
        }
        Ok(Descriptors {
            desc,
            b: self.layout(key, key.n, key.k, key.b)?,
            a: self.layout(key, key.k, key.m, key.a)?,
            y: self.layout(key, key.n, key.m, key.y)?,
            bias: key.bias,
        })
    }

    /// Returns up to `most` algorithms with the workspace they need in bytes, in order of expected speed.
    /// Empty if the library has no algorithm for this.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) fn candidates(&self, key: &Key, on: &Descriptors, most: usize) -> Result<Vec<(Algo, u64)>> {
        let table = self.table;
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: writes one descriptor to `raw`.
        let status = unsafe { (table.preference_create)(&mut raw) };
        check(table, "cublasLtMatmulPreferenceCreate", status)?;
        // SAFETY: made just now, for us, as plain memory without thread-local state, with the function that ends it.
        let preference = unsafe { Owned::new(raw, table.preference_destroy) };
        preference.set(table, table.preference_set, PREF_WORKSPACE, WORKSPACE)?;
        preference.set(table, table.preference_set, PREF_REDUCTION_MASK, reductions(key))?;
        let [a, b, _, y] = key.align;
        for (attribute, align) in PREF_ALIGN.into_iter().zip([b, a, y, y]) {
            preference.set(table, table.preference_set, attribute, align)?;
        }
        let mut found = vec![Heuristic::default(); most];
        let mut count: c_int = 0;
        // SAFETY: handle and descriptors are alive; `found` has room for `most` results, of which
        // the library writes `count`.
        let status = unsafe {
            (table.heuristic)(
                self.handle.raw,
                on.desc.raw(),
                on.b.raw(),
                on.a.raw(),
                on.y.raw(),
                on.y.raw(),
                preference.raw(),
                most as c_int,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        // CUBLAS_STATUS_NOT_SUPPORTED: "if no heuristic available for current configuration".
        if status == 15 {
            return Ok(Vec::new());
        }
        check(table, "cublasLtMatmulAlgoGetHeuristic", status)?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        Ok(found.iter().filter(|h| h.state == 0).map(|h| (h.algo, h.workspace as u64)).collect())
    }

    /// The bytes of workspace that an algorithm needs here; `None` when it cannot do this.
    pub(super) fn accepts(&self, on: &Descriptors, algo: &Algo) -> Option<u64> {
        let mut result = Heuristic::default();
        // SAFETY: handle and descriptors are alive; the library reads `algo` and writes `result`.
        let status = unsafe {
            (self.table.check)(
                self.handle.raw,
                on.desc.raw(),
                on.b.raw(),
                on.a.raw(),
                on.y.raw(),
                on.y.raw(),
                algo,
                &mut result,
            )
        };
        (status == 0 && result.state == 0 && result.workspace as u64 <= WORKSPACE)
            .then_some(result.workspace as u64)
    }

    /// Adds the product to a stream, or to the current capture on it.
    ///
    /// # Safety
    /// `stream` must be a stream of the handle's context. The addresses must refer to the operands that `on`
    /// describes, on that device, aligned as its key states, and `workspace` to as many bytes as it states, aligned to 256;
    /// all of them must remain valid until the product has run.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(super) unsafe fn matmul(
        &self,
        on: &mut Descriptors,
        algo: &Algo,
        at: Addresses,
        workspace: Workspace,
        stream: Raw,
    ) -> Result<()> {
        if on.bias {
            on.desc.set(self.table, self.table.desc_set, DESC_BIAS_POINTER, at.bias)?;
        }
        let (one, zero) = (1.0f32, 0.0f32);
        let pointer = |addr: u64| addr as usize as *mut c_void;
        // SAFETY: handle and descriptors are alive, the scalars are read during the call, and the
        // caller vouches for the addresses and the stream. C is D, which beta 0 leaves unread.
        let status = unsafe {
            (self.table.matmul)(
                self.handle.raw,
                on.desc.raw(),
                std::ptr::from_ref(&one).cast(),
                pointer(at.b),
                on.b.raw(),
                pointer(at.a),
                on.a.raw(),
                std::ptr::from_ref(&zero).cast(),
                pointer(at.y),
                on.y.raw(),
                pointer(at.y),
                on.y.raw(),
                algo,
                pointer(workspace.addr),
                workspace.bytes as usize,
                stream,
            )
        };
        check(self.table, "cublasLtMatmul", status)
    }
}
