//! Classification of the driver's error codes: recoverable, or the context is lost.

use super::types::CUresult;

pub(super) const OUT_OF_MEMORY: CUresult = 2;
/// Also the answer to a question about something that is not there.
pub(super) const INVALID_VALUE: CUresult = 1;
const INVALID_CONTEXT: CUresult = 201;
pub(super) const NOT_READY: CUresult = 600;
/// The capture was invalidated: by us, or by another thread of the process.
pub(super) const CAPTURE_INVALIDATED: CUresult = 901;
/// An executable cannot run another graph by being updated.
pub(super) const UPDATE_REFUSED: CUresult = 910;

/// Returns the reason why a context is lost after `code`, if it is. If the code alone is inconclusive, the
/// context is queried: a lost context answers every query with an error, and `ask` is one that would
/// otherwise succeed.
pub(super) fn lost(code: CUresult, ask: impl FnOnce() -> CUresult) -> Option<&'static str> {
    // No context is current, or the current one was destroyed: this is not conclusive about ours.
    if let Some(cause) = cause(code).filter(|_| code != INVALID_CONTEXT) {
        return Some(cause);
    }
    if tells(code) {
        return None;
    }
    match ask() {
        0 => None,
        again => Some(cause(again).unwrap_or(
            "the driver reports no cause and keeps failing; see the system log (`dmesg`, lines with Xid), and restart \
             the process",
        )),
    }
}

/// Returns whether the code itself means that only this call failed, according to the numbers in `cuda.h`.
/// This is not the case for codes that are not listed there, an unknown error (999), an unavailable device
/// (46), and errors of the system as a whole.
fn tells(code: CUresult) -> bool {
    matches!(
        code,
        1 | 2 | 5..=8 | 34 | 36 | 100 | 101 | 200 | 202..=213 | 215..=219 | 221..=225 | 300..=304 | 400..=402
            | 500 | 600 | 701 | 703..=708 | 711..=713 | 720 | 800 | 801 | 900..=910 | 912..=917
    )
}

/// Returns the reason why a context is lost, for codes that only a lost context returns.
fn cause(code: CUresult) -> Option<&'static str> {
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
        226 => {
            "the GPU contained a memory error, and this process must end; see `nvidia-smi -q` and the system log, and \
             replace the card if it comes back"
        }
        721 => "a kernel ended without freeing the tensor memory that it took",
        214 | 220 => {
            "the GPU reported a memory or link error that it could not correct; see `nvidia-smi -q` and the \
             system log, and replace the card if it comes back"
        }
        201 | 709 | 4 => "its context was destroyed or the driver is shutting down",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> CUresult {
        panic!("the code says it")
    }

    #[test]
    fn codes_that_say_it_are_not_asked_about() {
        for code in [700, 716, 717, 718, 719, 714, 715, 710, 702, 214, 220, 226, 721, 709, 4] {
            assert!(lost(code, never).is_some(), "{code}");
        }
        for code in [1, OUT_OF_MEMORY, NOT_READY, CAPTURE_INVALIDATED, UPDATE_REFUSED, 801, 400, 209, 222] {
            assert!(lost(code, never).is_none(), "{code}");
        }
    }

    #[test]
    fn a_thread_without_a_context_is_no_lost_one() {
        assert_eq!(lost(INVALID_CONTEXT, || 0), None, "ours answers");
        assert!(lost(INVALID_CONTEXT, || INVALID_CONTEXT).is_some_and(|reason| reason.contains("destroyed")));
    }

    #[test]
    fn codes_that_do_not_say_it_are_asked_about() {
        for code in [999, 46, 3, 802, 911, 12_345] {
            assert_eq!(lost(code, || 0), None, "{code} has passed");
            assert!(lost(code, || code).is_some_and(|reason| reason.contains("Xid")), "{code} is sticky");
            assert!(
                lost(code, || 700).is_some_and(|reason| reason.contains("address")),
                "{code} hid another"
            );
        }
    }
}
