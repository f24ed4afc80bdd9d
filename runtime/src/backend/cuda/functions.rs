//! Libraries of NVIDIA's as tables of functions that are looked up at run time, and the objects that they make.

use std::ffi::{CStr, c_char, c_int, c_void};

/// The status that a function of a library returns; 0 is success.
pub(super) type Status = c_int;
/// Handles and descriptors.
pub(super) type Raw = *mut c_void;

/// Declares `Table`: a library's functions, each by its symbol and signature, and the library that keeps them loaded.
///
/// Whoever uses it vouches that the header of every version that is loaded declares these signatures.
macro_rules! functions {
    (install $remedy:literal; $($name:ident: $symbol:literal ($($arg:ty),* $(,)?) -> $out:ty;)*) => {
        /// The functions that we call.
        #[derive(Debug)]
        pub(super) struct Table {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> $out,)*
            /// The file from which they were loaded.
            pub(super) path: String,
            /// Keeps the functions loaded.
            _library: libloading::Library,
        }

        impl Table {
            fn new(library: libloading::Library, path: String) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the symbol, if present, is the function of this name in the library's header, which declares
                        // this signature in every version that is loaded, as the use of this macro says.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($arg),*) -> $out>($symbol.to_bytes_with_nul())
                        };
                        *symbol.map_err(|_| format!("it lacks `{}`; {}", $symbol.to_string_lossy(), $remedy))?
                    },)*
                    path,
                    _library: library,
                })
            }
        }
    };
}

pub(super) use functions;

/// Returns what a library calls a status.
///
/// # Safety
/// `names` must take any number and return null or a terminated string that is never freed.
pub(super) unsafe fn name_of(names: unsafe extern "C" fn(Status) -> *const c_char, status: Status) -> String {
    // SAFETY: our caller vouches for the function.
    let at = unsafe { names(status) };
    if at.is_null() {
        return format!("status {status}");
    }
    // SAFETY: not null, so it is a terminated string that is never freed, as our caller vouches.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_string_lossy().into_owned()
}

/// A descriptor of a library, destroyed with its owner.
#[derive(Debug)]
pub(super) struct Owned {
    raw: Raw,
    destroy: unsafe extern "C" fn(Raw) -> Status,
}

impl Owned {
    /// Takes what a function of a library has made.
    ///
    /// # Safety
    /// `raw` must be alive and owned by nobody else; `destroy` must be the function that ends such objects. They must be plain
    /// memory without thread-local state.
    pub(super) unsafe fn new(raw: Raw, destroy: unsafe extern "C" fn(Raw) -> Status) -> Self {
        Self { raw, destroy }
    }

    /// The object, alive as long as its owner.
    pub(super) fn raw(&self) -> Raw {
        self.raw
    }
}

// SAFETY: such objects are plain memory without thread-local state, as `new` demands. There is one owner, so no two threads
// use one at the same time.
unsafe impl Send for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `raw` is alive, and is destroyed once, here, by its own function, as `new` demands.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}
