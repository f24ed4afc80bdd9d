//! NVIDIA's run-time compiler, found and loaded when the first kernel is needed.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use libloading::Library;

use super::target::Target;
use crate::{
    Error, Result,
    backend::cuda::{
        driver,
        kernels::{FOR_USERS, Header},
        search::{self, Loaded, Wanted},
    },
};

type Code = c_int;
type Program = *mut c_void;
type CountArchs = unsafe extern "C" fn(*mut c_int) -> Code;
type ListArchs = unsafe extern "C" fn(*mut c_int) -> Code;

/// The compiler.
#[derive(Debug)]
pub(crate) struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Code,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    code_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    code: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    /// Since CUDA 11.2.
    archs: Option<(CountArchs, ListArchs)>,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    explain: unsafe extern "C" fn(Code) -> *const c_char,
    /// Before CUDA 12 one compilation at a time; later versions are made for several threads.
    turn: Option<Mutex<()>>,
    _builtins: Option<Library>,
    _library: Library,
}

/// One source file with the files that it includes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// For messages.
    pub(crate) name: &'a str,
    /// CUDA C++.
    pub(crate) text: &'a str,
    /// `common.cuh`.
    pub(crate) common: &'a str,
    /// A header of its own.
    pub(crate) header: Option<Header>,
}

/// The library to search for.
const WANTED: Wanted = Wanted {
    variable: "GRAPHABLE_NVRTC",
    names: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
    wheels: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
    remedy: "install it (`pip install nvidia-cuda-nvrtc`, or the CUDA toolkit), and set GRAPHABLE_NVRTC to the file or \
             its folder if it is found in none of these; a driver before 580 needs `nvidia-cuda-nvrtc-cu12`",
};

impl Nvrtc {
    /// The compiler of this machine. One that is missing is looked for again when it is needed again.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`] if it is missing.
    pub(crate) fn get() -> Result<&'static Self> {
        static NVRTC: OnceLock<Nvrtc> = OnceLock::new();
        static OPENING: Mutex<()> = Mutex::new(());
        if let Some(nvrtc) = NVRTC.get() {
            return Ok(nvrtc);
        }
        let _one = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nvrtc) = NVRTC.get() {
            return Ok(nvrtc);
        }
        let opened = Self::open().map_err(|reason| Error::NoDevice {
            device: "NVRTC, CUDA's run-time compiler,".into(),
            reason,
        })?;
        Ok(NVRTC.get_or_init(|| opened))
    }

    fn open() -> Result<Self, String> {
        // The library loads its built-ins by name; if they are in a folder outside the search path, it finds
        // them only if they are already loaded.
        let places = search::places(&WANTED, &search::environment);
        let driver = driver::cuda_major();
        search::load(&WANTED, &places, builtins_in, |Loaded { library, first, path }| {
            let nvrtc = Self::new(library, first)
                .map_err(|symbol| format!("it lacks {symbol}; version 12 or newer is needed"))?;
            let major = u32::try_from(nvrtc.version().0).unwrap_or(0);
            if let Some(reason) = search::too_new(major, driver) {
                return Err(reason);
            }
            tracing::debug!(path = %path.display(), major, "NVRTC loaded");
            Ok(nvrtc)
        })
    }

    fn new(library: Library, builtins: Option<Library>) -> Result<Self, String> {
        macro_rules! symbol {
            ($name:literal) => {{
                // SAFETY: the symbol, if present, is NVRTC's function of this name, with the
                // signature of the field that it goes to, which never changed.
                let symbol = unsafe { library.get($name.to_bytes_with_nul()) };
                *symbol.map_err(|_| format!("`{}`", $name.to_string_lossy()))?
            }};
        }
        // SAFETY: NVRTC's function of this name, if present, which writes one `int` through its parameter in every version.
        let count = unsafe { library.get::<CountArchs>(b"nvrtcGetNumSupportedArchs\0") };
        // SAFETY: NVRTC's function of this name, if present, which writes a list of `int`s through its parameter in every version.
        let archs = unsafe { library.get::<ListArchs>(b"nvrtcGetSupportedArchs\0") };
        let archs = count.ok().map(|f| *f).zip(archs.ok().map(|f| *f));
        let mut nvrtc = Self {
            archs,
            version: symbol!(c"nvrtcVersion"),
            create: symbol!(c"nvrtcCreateProgram"),
            compile: symbol!(c"nvrtcCompileProgram"),
            log_size: symbol!(c"nvrtcGetProgramLogSize"),
            log: symbol!(c"nvrtcGetProgramLog"),
            code_size: symbol!(c"nvrtcGetCUBINSize"),
            code: symbol!(c"nvrtcGetCUBIN"),
            ptx_size: symbol!(c"nvrtcGetPTXSize"),
            ptx: symbol!(c"nvrtcGetPTX"),
            destroy: symbol!(c"nvrtcDestroyProgram"),
            explain: symbol!(c"nvrtcGetErrorString"),
            turn: None,
            _builtins: builtins,
            _library: library,
        };
        nvrtc.turn = (nvrtc.version().0 < 12).then(Mutex::default);
        Ok(nvrtc)
    }

    /// Returns the architectures for which it can compile, such as 90 for compute capability 9.0; `None` if
    /// it does not report them.
    pub(crate) fn architectures(&self) -> Option<Vec<u32>> {
        let (count, list) = self.archs?;
        let mut n = 0;
        // SAFETY: one integer is written.
        if unsafe { count(&mut n) } != 0 {
            return None;
        }
        let mut out = vec![0; usize::try_from(n).ok()?];
        // SAFETY: the list has room for as many entries as it reported.
        if unsafe { list(out.as_mut_ptr()) } != 0 {
            return None;
        }
        Some(out.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect())
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: two integers are written.
        unsafe { (self.version)(&mut major, &mut minor) };
        (major, minor)
    }

    fn said(&self, code: Code) -> String {
        // SAFETY: takes any code.
        let text = unsafe { (self.explain)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: not null, so it is a static, terminated string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Compiles machine code for one architecture (`sm_90a`), or code for the driver to compile
    /// (`compute_90`); also returns the compiler's messages.
    ///
    /// # Errors
    /// Returns [`Error::Device`] with the compiler's log.
    pub(crate) fn compile(
        &self,
        source: Source<'_>,
        target: &Target,
        options: &[String],
    ) -> Result<(Vec<u8>, String)> {
        let _turn = self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let arch = target.name();
        let failed = |reason: String| Error::Device { device: "NVRTC".into(), call: "compile", reason };
        let c = |text: &str| CString::new(text).map_err(|_| failed(format!("{}: a zero byte", source.name)));
        let (name, text, common) = (c(source.name)?, c(source.text)?, c(source.common)?);
        let users = c(FOR_USERS)?;
        let own =
            source.header.map(|own| c(own.text).and_then(|text| Ok((text, c(own.name)?)))).transpose()?;
        // The last of each is used only if there is one.
        let (own_text, own_name) = own
            .as_ref()
            .map_or((std::ptr::null(), std::ptr::null()), |(text, name)| (text.as_ptr(), name.as_ptr()));
        let headers = [common.as_ptr(), users.as_ptr(), own_text];
        let includes = [c"common.cuh".as_ptr(), c"graphable.cuh".as_ptr(), own_name];
        let count = 2 + c_int::from(own.is_some());
        let mut raw = std::ptr::null_mut();
        // SAFETY: all strings are terminated and live over the call, which copies them; the first `count` of each list
        // are strings.
        let code = unsafe {
            (self.create)(&mut raw, text.as_ptr(), name.as_ptr(), count, headers.as_ptr(), includes.as_ptr())
        };
        if code != 0 {
            return Err(failed(format!("{}: {}", source.name, self.said(code))));
        }
        let program = Owned { nvrtc: self, raw };
        let mut arguments = vec![c(&format!("--gpu-architecture={arch}"))?];
        for option in options {
            arguments.push(c(option)?);
        }
        let list: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
        // SAFETY: the program lives; the list has the stated number of terminated strings.
        let code = unsafe { (self.compile)(program.raw, list.len() as c_int, list.as_ptr()) };
        let log = program.text(self.log_size, self.log);
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        if code != 0 {
            let reason =
                format!("{} for {arch} ({}): {}\n{log}", source.name, options.join(" "), self.said(code));
            return Err(failed(reason));
        }
        let machine = match target {
            Target::Machine(_) => program.text(self.code_size, self.code),
            Target::Virtual(_) => program.text(self.ptx_size, self.ptx),
        };
        if machine.is_empty() {
            return Err(failed(format!("{} for {arch}: no code came out", source.name)));
        }
        Ok((machine, log))
    }
}

struct Owned<'a> {
    nvrtc: &'a Nvrtc,
    raw: Program,
}

impl Owned<'_> {
    fn text(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Code,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ) -> Vec<u8> {
        let mut bytes = 0;
        // SAFETY: the program lives; one integer is written.
        if unsafe { size(self.raw, &mut bytes) } != 0 || bytes == 0 {
            return Vec::new();
        }
        let mut out = vec![0u8; bytes];
        // SAFETY: the program lives; the buffer has the size that it asked for.
        match unsafe { get(self.raw, out.as_mut_ptr().cast()) } {
            0 => out,
            _ => Vec::new(),
        }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: created by this compiler and destroyed once.
        unsafe { (self.nvrtc.destroy)(&mut self.raw) };
    }
}

fn builtins_in(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc-builtins.so"))
        })
        .collect();
    found.sort();
    found.pop()
}
