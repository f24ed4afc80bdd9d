//! Counters of a runtime.

use std::time::Duration;

#[cfg(doc)]
use crate::{Event, WaitReason};
use crate::{FallbackReason, RecordingId};

/// Sums of the events, and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments run in warm-up.
    pub warmups: u64,
    /// Of these, those of segments that are warm already and wait to be recorded, each for a [`WaitReason`].
    pub waits: u64,
    /// Segments recorded.
    pub recordings: u64,
    /// Host time that captures took, as [`Event::Recorded`] has it for each.
    pub capture_time: Duration,
    /// Recordings run.
    pub replays: u64,
    /// Recordings made although there was one of that shape.
    pub rerecordings: u64,
    /// Recordings that took another's executable.
    pub shares: u64,
    /// Executables changed in place, to run another of the recordings that share them.
    pub updates: u64,
    /// Host time that those took.
    pub update_time: Duration,
    /// Recordings that got an executable of their own, although recordings may share them.
    pub unshared: u64,
    /// Eager regions run.
    pub eager_calls: u64,
    /// Tensors copied to their slots.
    pub copies: u64,
    /// Bytes of those.
    pub copied_bytes: u64,
    /// Live-ins that are copied because they kept moving, in the recordings that exist now.
    pub copied_slots: usize,
    /// Calls or segments that ran without a graph.
    pub fallbacks: u64,
    /// The same, where the program asked for it: switched off, too small, a policy.
    pub skips: u64,
    /// Combinations of sizes that `capture_all` could not settle.
    pub not_converged: u64,
    /// Nodes evicted.
    pub evicted: u64,
    /// Captures abandoned.
    pub aborted: u64,
    /// Captures invalidated from outside this runtime, such as by a device-wide wait on another thread.
    pub captures_invalidated: u64,
    /// Audits made.
    pub audits: u64,
    /// On a GPU: how often the host waited for the device, because all memory for host inputs too large for a kernel's
    /// parameter was on its way there. The host runs ahead by at most 64 such inputs, or 256 MiB, and within one call
    /// by at most 64 MiB.
    pub staging_waits: u64,
    /// Nodes in the tree now.
    pub nodes: usize,
    /// Bytes of the segment pool that were ever in use at once.
    pub pool_bytes: u64,
    /// The same for the results arena.
    pub result_bytes: u64,
    /// The same for the eager arena.
    pub eager_bytes: u64,
    /// Bytes of memory that [kept](crate::Kept) values hold now.
    pub kept_bytes: u64,
    /// Bytes of dropped ones that wait to be used again; after a few steps they are freed.
    pub cached_bytes: u64,
    /// Executables now: fewer than nodes where recordings share them, or launch nothing.
    pub executables: usize,
    /// Bytes of executables, as far as the backend knows.
    pub executable_bytes: u64,
    /// Bytes that they would take besides if each recording had its own.
    pub shared_bytes: u64,
    /// Reasons of the fallbacks and skips, each once with its count. Sizes and numbers in them are those of
    /// the first time.
    pub fallback_reasons: Vec<(FallbackReason, u64)>,
}

/// A live-in that kept moving and is copied since then, of one recording: see
/// [`Runtime::copied_slots`](crate::Runtime::copied_slots).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedSlot {
    /// The segment.
    pub segment: String,
    /// The recording.
    pub recording: RecordingId,
    /// Index among the segment's device operands.
    pub live_in: usize,
    /// Bytes of one copy: what the recording reads of it.
    pub bytes: u64,
    /// Copies made.
    pub copies: u64,
}
