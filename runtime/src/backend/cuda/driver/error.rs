//! What the driver's codes mean for us: recoverable, or the context is lost.

use super::types::CUresult;

pub(super) const OUT_OF_MEMORY: CUresult = 2;
pub(super) const NOT_READY: CUresult = 600;
/// The capture was spoilt: by us, or by another thread of the process.
pub(super) const CAPTURE_INVALIDATED: CUresult = 901;
/// An executable cannot run another graph by being updated.
pub(super) const UPDATE_REFUSED: CUresult = 910;

/// Why a context is lost after `code`, if it is.
pub(super) fn lost(code: CUresult) -> Option<&'static str> {
    Some(match code {
        700 => {
            "a kernel used an address that is not its own: an index beyond a buffer in a kernel of yours, or \
             memory that was freed while a launch needed it; `compute-sanitizer` names the kernel"
        }
        716 => "a kernel used a misaligned address: a vector load from memory that is not aligned to it",
        717 | 718 => {
            "a kernel jumped to, or used, an address of the wrong kind; its code or stack was overwritten"
        }
        719 | 714 | 715 => "a kernel crashed; `compute-sanitizer` names the kernel",
        710 => "an assertion in a kernel failed; its message is on standard error",
        702 => "a kernel ran longer than the display driver allows on this GPU",
        214 | 220 | 721 => {
            "the GPU reported a memory or link error that it could not correct; see `nvidia-smi -q` and the \
             system log, and replace the card if it comes back"
        }
        201 | 709 | 4 => "its context was destroyed or the driver is shutting down",
        _ => return None,
    })
}
