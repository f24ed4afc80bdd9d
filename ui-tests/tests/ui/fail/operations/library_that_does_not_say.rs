//! Whether a capture may hold the work of a library has no default.

use graphable::custom::{CudaCall, CudaLibrary, LibraryError};

struct Fft;

// SAFETY: it does nothing.
unsafe impl CudaLibrary for Fft {
    fn launch(&self, _: &CudaCall<'_>) -> Result<(), LibraryError> {
        Ok(())
    }
}

fn main() {}
