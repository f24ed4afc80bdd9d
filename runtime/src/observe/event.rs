//! Typed events: the actions of the runtime, with their reasons.

use std::{fmt, time::Duration};

use crate::base::{reason::FallbackReason, recording_id::RecordingId};

/// The reason why a segment runs in warm-up instead of being recorded, in [`Event::Waited`] and
/// [`GraphTree::waiting`](crate::observe::inspect::GraphTree::waiting).
///
/// A recording is found again by the live blocks of the memory pool. After a warm-up these differ from the
/// blocks after the recording that replaces it in the next call, so a recording made there would not be found
/// again.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It had not run with these shapes and host values before, and will be recorded next.
    NotWarm,
    /// The same segment was warmed up earlier in this call, for example in a previous layer. The next call
    /// records it; so does this call, as soon as the same values recur at the same addresses, as in a loop.
    WarmedInThisCall,
    /// Another segment was warmed up earlier in this call. The next call records it, whatever runs before it.
    BehindWarmUp {
        /// The first segment that was warmed up in this call.
        segment: String,
    },
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWarm => f.write_str("it ran with these shapes and host values for the first time"),
            Self::WarmedInThisCall => f.write_str("it was warmed up earlier in the same call"),
            Self::BehindWarmUp { segment } => write!(f, "{segment} was warmed up before it in the same call"),
        }
    }
}

/// The reason why a segment that had a recording of this shape was recorded again.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RerecordReason {
    /// The live blocks of the pool differed from those of every recording.
    LiveSet,
    /// A live-in was at a different address.
    InputMoved {
        /// The index of the live-in.
        live_in: usize,
    },
    /// The block in which a recording leaves its result was still held.
    ResultHeld,
}

impl fmt::Display for RerecordReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LiveSet => f.write_str("other tensors were alive in the pool"),
            Self::InputMoved { live_in } => write!(f, "live-in {live_in} moved"),
            Self::ResultHeld => f.write_str("an earlier result was still held"),
        }
    }
}

/// The reason why a recording has an executable of its own, although recordings may
/// [share](crate::Runtime::share_executables) them and others of its place existed, or it shared one before.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsharedReason {
    /// No other recording of its place has the same nodes and edges.
    OtherTopology,
    /// The device cannot run it through the executable of another recording.
    Refused {
        /// The device's message.
        reason: String,
    },
    /// An update exceeded its time budget.
    OverBudget {
        /// The duration of the update.
        cost: Duration,
        /// The budget.
        budget: Duration,
    },
    /// It runs in the same step as another recording of that executable.
    SameStep,
}

impl fmt::Display for UnsharedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTopology => f.write_str("it has other nodes or edges"),
            Self::Refused { reason } => write!(f, "the device refuses: {reason}"),
            Self::OverBudget { cost, budget } => {
                write!(f, "an update took {cost:?}, and may take {budget:?}")
            }
            Self::SameStep => f.write_str("both run in one step"),
        }
    }
}

/// The reason for a copy of a tensor.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySlot {
    /// A device input was padded into its static buffer.
    Input,
    /// The result of an eager region was moved to its recorded slot.
    Eager,
    /// An output of the call was moved to the results arena; or the result of a recording was moved out of
    /// its block, because that block is or was held. The bytes include memory that was saved there and
    /// restored.
    Result,
    /// A live-in was copied to the buffer that its recording reads, because its address kept changing; or to
    /// its recorded address, because nothing else may be recorded. The bytes include memory that was saved
    /// there and restored.
    LiveIn,
    /// A storage was copied out of its step by [`keep`](crate::Eager::keep).
    Kept,
}

/// One event.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment ran eagerly, in the pool, before its first recording.
    Warmed {
        /// The segment.
        segment: String,
    },
    /// A segment that was warmed up before is not recorded yet and runs in warm-up once more.
    /// [`Warmed`](Self::Warmed) follows.
    Waited {
        /// The function that was called.
        function: &'static str,
        /// The segment.
        segment: String,
        /// The reason.
        reason: WaitReason,
    },
    /// A segment was recorded.
    Recorded {
        /// The segment.
        segment: String,
        /// The new recording.
        recording: RecordingId,
        /// The host time from the start of the capture until the recording was ready and launched for the
        /// first time.
        capture: Duration,
    },
    /// A new recording uses the executable of another one.
    Shared {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// The other recording.
        with: RecordingId,
    },
    /// An executable was updated in place to run this recording.
    Updated {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// The host time that it took.
        cost: Duration,
    },
    /// A recording got an executable of its own, although recordings may share them.
    Unshared {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// The reason.
        reason: UnsharedReason,
    },
    /// A capture was invalidated from outside this runtime, and is retried.
    CaptureInvalidated {
        /// The segment.
        segment: String,
    },
    /// A recording ran.
    Replayed {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
    },
    /// A segment is recorded although it has recordings for this shape.
    Rerecorded {
        /// The segment.
        segment: String,
        /// The reason.
        reason: RerecordReason,
    },
    /// A live-in moved so often that its bytes are copied from now on.
    SwitchedToCopy {
        /// The segment.
        segment: String,
        /// The index among the segment's device operands.
        live_in: usize,
        /// The number of times that it moved.
        moves: usize,
    },
    /// A function was called with a number of distinct shapes that deserves attention.
    ManyShapes {
        /// The function.
        function: &'static str,
        /// The number of shapes.
        shapes: usize,
    },
    /// `capture_all` begins, and the schedules make a number of combinations of sizes that deserves
    /// attention.
    ManyCaptures {
        /// The function.
        function: &'static str,
        /// The number of calls that are captured.
        captures: usize,
    },
    /// An eager region ran.
    RanEager {
        /// The boundary.
        boundary: String,
    },
    /// A tensor was copied because it was elsewhere.
    Copied {
        /// The reason for the copy.
        slot: CopySlot,
        /// The number of bytes.
        bytes: u64,
    },
    /// Something ran without a graph.
    FellBack {
        /// The function.
        function: &'static str,
        /// The reason.
        reason: FallbackReason,
    },
    /// `capture_all` repeated a call for the maximum number of times, and it still recorded something new:
    /// calls in service will do so as well.
    NotConverged {
        /// The function.
        function: &'static str,
        /// The sizes of its `#[dims]` symbols.
        sizes: Vec<usize>,
        /// The segments that were warmed up or recorded in the last pass.
        segments: Vec<String>,
    },
    /// A plan of captures ran under [`Runtime::measure_memory`](crate::Runtime::measure_memory).
    CaptureMeasured {
        /// The previous result of [`Runtime::estimate_memory`](crate::Runtime::estimate_memory), if there is
        /// one.
        expected_bytes: Option<u64>,
        /// The memory that it took.
        bytes: u64,
    },
    /// Recordings were evicted because an object that they use was dropped, because a result is placed better
    /// now, or because their body behaves differently now.
    Evicted {
        /// The number of recordings.
        recordings: usize,
    },
    /// A capture was aborted because the body failed.
    Aborted {
        /// The segment.
        segment: String,
    },
    /// A replay was compared with its body, and was correct.
    Audited {
        /// The segment.
        segment: String,
    },
}
