//! A library is dropped, and may be called, on any thread.

use graphable::custom::{CudaCall, CudaLibrary, LibraryError};

struct Fft {
    handle: *mut u8,
}

// SAFETY: it does nothing.
unsafe impl CudaLibrary for Fft {
    fn may_be_captured(&self) -> bool {
        self.handle.is_null()
    }

    fn launch(&self, _: &CudaCall<'_>) -> Result<(), LibraryError> {
        Ok(())
    }
}

fn main() {}
