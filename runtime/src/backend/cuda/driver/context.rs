//! One device of this process: its primary context, shared by all our runtimes and with cudarc.

use std::{
    collections::HashMap,
    ffi::{CStr, c_int},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{
    error,
    module::Module,
    once::OnceMap,
    table::{Table, name_of, table},
    types::{CUresult, Handle},
};
use crate::{
    Error, Result,
    backend::cuda::{DeviceProperties, kernels::Unit},
};

/// A device's primary context.
pub(crate) struct Context {
    pub(super) table: &'static Table,
    ordinal: usize,
    device: c_int,
    raw: Handle,
    name: String,
    props: DeviceProperties,
    lost: OnceLock<String>,
    modules: OnceMap<Unit, Arc<Module>>,
}

// SAFETY: a primary context belongs to its device and is shared by the process; `cuCtxSetCurrent` makes it current to any
// thread (CUDA Driver API, "Primary Context Management" and "Context Management").
unsafe impl Send for Context {}
// SAFETY: a context may be current to several threads at the same time (same document). The fields of ours that change are
// behind locks (`OnceLock`, `OnceMap`).
unsafe impl Sync for Context {}

/// GPUs with a lower compute capability lack features that the kernels use (bf16 arithmetic, `cp.async`).
const OLDEST: (u32, u32) = (8, 0);

/// Returns the number of GPUs that the driver reports.
///
/// # Errors
/// Returns [`Error::NoDevice`] without a driver.
pub(crate) fn device_count() -> Result<usize> {
    let table = table()?;
    let mut count = 0;
    // SAFETY: the driver is initialised; it writes one integer.
    let code = unsafe { (table.device_count)(&mut count) };
    if code != 0 {
        return Err(Error::NoDevice { device: "cuda".into(), reason: name_of(table, code) });
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

impl Context {
    /// The context of device `ordinal`: one per device and process, kept until the
    /// process ends: libraries hold on to it, and code that was loaded need not be loaded again.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`].
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        static OPEN: Mutex<Option<HashMap<usize, Arc<Context>>>> = Mutex::new(None);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get_or_insert_default();
        if let Some(context) = known.get(&ordinal)
            && context.lost.get().is_none()
        {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(Self::new(ordinal)?);
        known.insert(ordinal, Arc::clone(&context));
        Ok(context)
    }

    fn new(ordinal: usize) -> Result<Self> {
        let name = format!("cuda:{ordinal}");
        let missing = |reason: String| Error::NoDevice { device: name.clone(), reason };
        let count = device_count().map_err(|error| match error {
            Error::NoDevice { reason, .. } => missing(reason),
            other => other,
        })?;
        if ordinal >= count {
            return Err(missing(match count {
                0 => "the driver shows no GPU; check `nvidia-smi` and CUDA_VISIBLE_DEVICES".into(),
                1 => "there is one GPU; use `cuda:0`".into(),
                n => format!("there are {n} GPUs, cuda:0 to cuda:{}", n - 1),
            }));
        }
        let table = table()?;
        let said = |code: CUresult| if code == 0 { Ok(()) } else { Err(missing(name_of(table, code))) };
        let mut device = 0;
        // SAFETY: the ordinal is below the count; one integer is written.
        said(unsafe { (table.device_get)(&mut device, ordinal as c_int) })?;
        let props = Self::read_props(table, device).map_err(|code| missing(name_of(table, code)))?;
        if props.capability < OLDEST {
            return Err(missing(format!(
                "{} has compute capability {}.{}; {}.{} (Ampere) or newer is needed",
                props.name, props.capability.0, props.capability.1, OLDEST.0, OLDEST.1
            )));
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `device` is a device; one handle is written. Released in `drop`.
        said(unsafe { (table.primary_retain)(&mut raw, device) })?;
        Ok(Self {
            table,
            ordinal,
            device,
            raw,
            name,
            props,
            lost: OnceLock::new(),
            modules: OnceMap::default(),
        })
    }

    fn read_props(table: &Table, device: c_int) -> Result<DeviceProperties, CUresult> {
        const MULTIPROCESSORS: c_int = 16;
        const MAJOR: c_int = 75;
        const MINOR: c_int = 76;
        const VIRTUAL_MEMORY: c_int = 102;
        const POOLS: c_int = 115;
        let attribute = |which: c_int| {
            let mut value = 0;
            // SAFETY: `device` is a device; one integer is written.
            let code = unsafe { (table.device_attribute)(&mut value, which, device) };
            if code == 0 { Ok(u32::try_from(value).unwrap_or(0)) } else { Err(code) }
        };
        let mut version = 0;
        // SAFETY: one integer is written.
        let code = unsafe { (table.driver_version)(&mut version) };
        if code != 0 {
            return Err(code);
        }
        let mut text = [0; 128];
        // SAFETY: at most 128 bytes are written, with a terminator.
        let code = unsafe { (table.device_name)(text.as_mut_ptr(), 128, device) };
        if code != 0 {
            return Err(code);
        }
        text[127] = 0;
        // SAFETY: the array is terminated, just above.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) };
        Ok(DeviceProperties {
            name: name.to_string_lossy().into_owned(),
            capability: (attribute(MAJOR)?, attribute(MINOR)?),
            multiprocessors: attribute(MULTIPROCESSORS)?,
            virtual_memory: attribute(VIRTUAL_MEMORY)? != 0,
            pools: attribute(POOLS)? != 0,
            // In graphs since CUDA 12.3.
            overlaps: attribute(MAJOR)? >= 9 && version >= 12_040,
            large_params: version >= 12_010,
        })
    }

    /// `cuda:0`, …
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the properties of the device.
    pub(crate) fn props(&self) -> &DeviceProperties {
        &self.props
    }

    /// Its number, from 0.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// For CUDA's own structs.
    pub(super) fn device(&self) -> c_int {
        self.device
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> Handle {
        self.raw
    }

    /// Returns whether all further calls must fail.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Returns the reason why all further calls must fail, if they must.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Turns a code into an error, and remembers when the context is lost.
    ///
    /// # Errors
    /// Returns [`Error::ContextLost`], [`Error::OutOfMemory`] (bytes unknown), [`Error::Device`].
    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        Err(self.failed(call, code))
    }

    #[cold]
    pub(super) fn failed(&self, call: &'static str, code: CUresult) -> Error {
        let said = name_of(self.table, code);
        if let Some(cause) = error::lost(code, || self.ask()) {
            let reason = self.lost.get_or_init(|| format!("{call} said {said}: {cause}"));
            return Error::ContextLost { device: self.name.clone(), reason: reason.clone() };
        }
        if code == error::OUT_OF_MEMORY {
            return Error::OutOfMemory { device: self.name.clone(), bytes: 0, what: call };
        }
        Error::Device { device: self.name.clone(), call, reason: said }
    }

    /// Returns the error of a library. It does not show whether the context is lost, so this queries the
    /// context.
    pub(crate) fn or_lost(&self, error: Error) -> Error {
        match error {
            Error::Device { call, .. } => match self.ask() {
                0 => error,
                code => self.failed(call, code),
            },
            other => other,
        }
    }

    /// A question that changes nothing and waits for nothing, and that a context answers unless it is lost.
    fn ask(&self) -> CUresult {
        // Another one may be current, or none: that is a reason for errors, too.
        let bound = self.bind_unasked();
        if let Err(code) = bound {
            return code;
        }
        let (mut free, mut total) = (0, 0);
        // SAFETY: two integers are written.
        unsafe { (self.table.mem_info)(&mut free, &mut total) }
    }

    /// Free and total bytes of the device.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let _bound = self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: two integers are written.
        self.check("cuMemGetInfo", unsafe { (self.table.mem_info)(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Waits for the work on all streams.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _bound = self.bind()?;
        // SAFETY: it takes nothing; the context is current.
        self.check("cuCtxSynchronize", unsafe { (self.table.ctx_synchronize)() })
    }

    /// Runs `work` as if there were no capture on this thread: its calls are not recorded and do not
    /// invalidate the capture.
    ///
    /// # Errors
    /// Returns the error of `work`.
    pub(crate) fn unordered<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        const RELAXED: c_int = 2;
        let mut mode = RELAXED;
        let _bound = self.bind()?;
        // SAFETY: one integer is read and written.
        let code = unsafe { (self.table.exchange_capture_mode)(&mut mode) };
        self.check("cuThreadExchangeStreamCaptureMode", code)?;
        let done = work();
        // SAFETY: a plain integer is exchanged; `mode` holds the previous value.
        let code = unsafe { (self.table.exchange_capture_mode)(&mut mode) };
        done.and_then(|done| self.check("cuThreadExchangeStreamCaptureMode", code).map(|()| done))
    }

    /// Returns a loaded module, which `load` makes the first time; other modules can be loaded meanwhile.
    /// Modules stay loaded while the context lives: unloading waits for the device.
    ///
    /// # Errors
    /// Returns the error of `load`.
    pub(crate) fn module(&self, unit: Unit, load: impl FnOnce() -> Result<Module>) -> Result<Arc<Module>> {
        self.modules.get_or_make(unit, || load().map(Arc::new))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_lost() {
            // SAFETY: retained in `new`; nothing of ours uses it any more.
            unsafe { (self.table.primary_release)(self.device) };
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("name", &self.name).finish_non_exhaustive()
    }
}
