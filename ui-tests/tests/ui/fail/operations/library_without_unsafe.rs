//! What a library must uphold is a promise, made by `unsafe impl`.

use graphable::custom::{CudaCall, CudaLibrary, LibraryError};

struct Fft;

impl CudaLibrary for Fft {
    fn may_be_captured(&self) -> bool {
        true
    }

    fn launch(&self, _: &CudaCall<'_>) -> Result<(), LibraryError> {
        Ok(())
    }
}

fn main() {}
