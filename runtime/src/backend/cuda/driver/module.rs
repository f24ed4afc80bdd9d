//! Loaded machine code.

use std::{
    ffi::CString,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

use super::{Context, error::INVALID_VALUE, types::Handle};
use crate::{Error, Result};

/// The first bytes of a cubin.
const ELF: &[u8] = b"\x7fELF";

/// Code on the device. Stays loaded: unloading would wait for the device.
#[derive(Debug)]
pub(crate) struct Module {
    raw: Handle,
    functions: Mutex<FxHashMap<&'static str, (Function, u32)>>,
}

// SAFETY: a module belongs to the context into which it was loaded, not to a thread (CUDA Driver API, "Module Management"),
// and is never unloaded.
unsafe impl Send for Module {}
// SAFETY: shared references only look functions up, by a handle that stays valid; our map of them has its lock.
unsafe impl Sync for Module {}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    raw: Handle,
}

// SAFETY: a function is a part of its module, which belongs to a context, not to a thread (CUDA Driver API, "Module
// Management"), and is never unloaded.
unsafe impl Send for Function {}
// SAFETY: shared references only copy the handle. The driver keeps a function's attributes, which we set
// only under the lock of the module's map.
unsafe impl Sync for Function {}

impl Function {
    /// A kernel that the driver names.
    pub(super) fn of(raw: Handle) -> Self {
        Self { raw }
    }

    /// The driver's handle.
    pub(super) fn raw(self) -> Handle {
        self.raw
    }

    /// Returns the size of each of its parameters, in bytes; `None` if the driver cannot say (before CUDA 12.4).
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(crate) fn parameter_sizes(self, context: &Context) -> Result<Option<Vec<usize>>> {
        let Some(parameter) = context.table.parameter else { return Ok(None) };
        let _bound = context.bind()?;
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: modules stay loaded, so the function of one is there; two numbers are written.
            let code = unsafe { parameter(self.raw, sizes.len(), &mut offset, &mut size) };
            // What the driver answers for the index after the last parameter.
            if code == INVALID_VALUE {
                return Ok(Some(sizes));
            }
            context.check("cuFuncGetParamInfo", code)?;
            sizes.push(size);
        }
    }
}

/// Bytes of dynamic shared memory that a kernel may use without a request: it has 48 KB together with up to 32 KB of its own.
pub(crate) const SHARED_WITHOUT_REQUEST: u32 = 16 << 10;

/// Blocks of a cluster that every device with clusters takes; more must be asked for.
const PORTABLE_CLUSTER: usize = 8;

impl Module {
    /// Loads a cubin, or PTX that ends with a zero byte. Must not be called during one of our captures.
    ///
    /// # Errors
    /// Returns [`Error::Device`] if the driver refuses the code.
    pub(crate) fn load(context: &Context, cubin: &[u8]) -> Result<Self> {
        let _bound = context.bind()?;
        if !cubin.starts_with(ELF) && cubin.last() != Some(&0) {
            return Err(Error::Device {
                device: context.name().to_owned(),
                call: "cuModuleLoadData",
                reason: "the code is neither a cubin nor PTX to its end".into(),
            });
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: a cubin is an ELF file, which states its own size, and PTX is text up to a zero byte,
        // checked just above; both are only read during the call.
        let code = unsafe { (context.table.module_load)(&mut raw, cubin.as_ptr().cast()) };
        context.check("cuModuleLoadData", code)?;
        Ok(Self { raw, functions: Mutex::default() })
    }

    /// A kernel by name, with at least `shared` bytes of dynamic shared memory allowed.
    ///
    /// # Errors
    /// Returns [`Error::Device`] if there is none of that name, or the device has less shared memory.
    pub(crate) fn function(&self, context: &Context, name: &'static str, shared: u32) -> Result<Function> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let (function, allowed) = match functions.get(name) {
            Some(known) => *known,
            None => (self.find(context, name)?, SHARED_WITHOUT_REQUEST),
        };
        if shared > allowed {
            const MAX_DYNAMIC_SHARED: i32 = 8;
            // SAFETY: a function of this module.
            let code = unsafe {
                (context.table.func_set_attribute)(function.raw, MAX_DYNAMIC_SHARED, shared as i32)
            };
            context.check("cuFuncSetAttribute", code)?;
        }
        functions.insert(name, (function, allowed.max(shared)));
        Ok(function)
    }

    fn find(&self, context: &Context, name: &'static str) -> Result<Function> {
        let symbol = CString::new(name).map_err(|_| Error::Config {
            what: format!("kernel name {name:?}"),
            reason: "it holds a zero byte".into(),
        })?;
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name terminated; one handle is written.
        let code = unsafe { (context.table.module_function)(&mut raw, self.raw, symbol.as_ptr()) };
        context.check("cuModuleGetFunction", code)?;
        // The driver loads a function when it is first used, and a capture may be the first use: asking
        // for an attribute loads it now.
        const REGISTERS: i32 = 4;
        let mut registers = 0;
        // SAFETY: the function was just found; one integer is written.
        let code = unsafe { (context.table.func_attribute)(&mut registers, REGISTERS, raw) };
        context.check("cuFuncGetAttribute", code)?;
        if context.props().largest_cluster() > PORTABLE_CLUSTER {
            const LARGE_CLUSTERS: i32 = 14;
            // SAFETY: the function was just found.
            let code = unsafe { (context.table.func_set_attribute)(raw, LARGE_CLUSTERS, 1) };
            context.check("cuFuncSetAttribute", code)?;
        }
        Ok(Function { raw })
    }
}
