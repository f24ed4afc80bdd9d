//! NVIDIA's run-time compiler, found and loaded when the first kernel is needed.

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use libloading::Library;

use crate::{Error, Result};

type Code = c_int;
type Program = *mut c_void;

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
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    explain: unsafe extern "C" fn(Code) -> *const c_char,
    /// One compilation at a time: older versions are not safe on several threads.
    turn: Mutex<()>,
    _builtins: Option<Library>,
    _library: Library,
}

/// One source file with what it includes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// For messages.
    pub(crate) name: &'a str,
    /// CUDA C++.
    pub(crate) text: &'a str,
    /// `common.cuh`.
    pub(crate) common: &'a str,
}

/// Where to look, and what to say when it is not there.
const VARIABLE: &str = "GRAPHABLE_NVRTC";

impl Nvrtc {
    /// The compiler of this machine.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when it is missing.
    pub(crate) fn get() -> Result<&'static Self> {
        static NVRTC: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
        NVRTC.get_or_init(Self::open).as_ref().map_err(|why| Error::NoDevice {
            device: "NVRTC, CUDA's run-time compiler,".into(),
            why: why.clone(),
        })
    }

    fn open() -> Result<Self, String> {
        let candidates = candidates();
        for path in &candidates {
            // The library loads its built-ins by name; from a folder off the search path it does not
            // find them unless they are loaded already.
            let builtins = path.parent().and_then(builtins_in).and_then(|b| {
                // SAFETY: a library of NVIDIA's that holds data for the compiler.
                unsafe { Library::new(b) }.ok()
            });
            // SAFETY: loading the compiler runs its initialisers, which are made for being loaded so.
            if let Ok(library) = unsafe { Library::new(path) } {
                return Self::new(library, builtins).map_err(|symbol| {
                    format!("{} lacks {symbol}; version 12 or newer is needed", path.display())
                });
            }
        }
        let tried: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
        Err(format!(
            "none of {} could be loaded; install it (`pip install nvidia-cuda-nvrtc`, or the CUDA toolkit) and \
             set {VARIABLE} to the file or its folder if it is not on the library path",
            tried.join(", ")
        ))
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
        Ok(Self {
            version: symbol!(c"nvrtcVersion"),
            create: symbol!(c"nvrtcCreateProgram"),
            compile: symbol!(c"nvrtcCompileProgram"),
            log_size: symbol!(c"nvrtcGetProgramLogSize"),
            log: symbol!(c"nvrtcGetProgramLog"),
            code_size: symbol!(c"nvrtcGetCUBINSize"),
            code: symbol!(c"nvrtcGetCUBIN"),
            destroy: symbol!(c"nvrtcDestroyProgram"),
            explain: symbol!(c"nvrtcGetErrorString"),
            turn: Mutex::default(),
            _builtins: builtins,
            _library: library,
        })
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

    /// Machine code for one architecture (`sm_90a`), with what the compiler said.
    ///
    /// # Errors
    /// [`Error::Device`] with the compiler's log.
    pub(crate) fn compile(
        &self,
        source: Source<'_>,
        arch: &str,
        options: &[String],
    ) -> Result<(Vec<u8>, String)> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |why: String| Error::Device { device: "NVRTC".into(), call: "compile", why };
        let c = |text: &str| CString::new(text).map_err(|_| failed(format!("{}: a zero byte", source.name)));
        let (name, text, common) = (c(source.name)?, c(source.text)?, c(source.common)?);
        let (headers, includes) = ([common.as_ptr()], [c"common.cuh".as_ptr()]);
        let mut raw = std::ptr::null_mut();
        // SAFETY: all strings are terminated and live over the call, which copies them.
        let code = unsafe {
            (self.create)(&mut raw, text.as_ptr(), name.as_ptr(), 1, headers.as_ptr(), includes.as_ptr())
        };
        if code != 0 {
            return Err(failed(format!("{}: {}", source.name, self.said(code))));
        }
        let program = Owned { nvrtc: self, raw };
        let mut arguments = vec![c(&format!("--gpu-architecture={arch}"))?, c("--std=c++17")?];
        for option in options {
            arguments.push(c(option)?);
        }
        let list: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
        // SAFETY: the program lives; the list has as many terminated strings as it says.
        let code = unsafe { (self.compile)(program.raw, list.len() as c_int, list.as_ptr()) };
        let log = program.text(self.log_size, self.log);
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        if code != 0 {
            let why =
                format!("{} for {arch} ({}): {}\n{log}", source.name, options.join(" "), self.said(code));
            return Err(failed(why));
        }
        let machine = program.text(self.code_size, self.code);
        if machine.is_empty() {
            return Err(failed(format!("{} for {arch}: no machine code came out", source.name)));
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

/// Files to try, in order.
fn candidates() -> Vec<PathBuf> {
    const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
    let mut out = Vec::new();
    if let Some(given) = env::var_os(VARIABLE) {
        let given = PathBuf::from(given);
        if given.is_dir() {
            out.extend(NAMES.map(|n| given.join(n)));
        } else {
            out.push(given);
        }
        // Somebody who names one does not want another.
        return out;
    }
    out.extend(NAMES.map(PathBuf::from));
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(root) = env::var_os(variable) {
            out.extend(NAMES.map(|n| Path::new(&root).join("lib64").join(n)));
        }
    }
    out.extend(NAMES.map(|n| Path::new("/usr/local/cuda/lib64").join(n)));
    out
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
