//! What the runtime did: typed events, with their reasons.

use std::{fmt, time::Duration};

use crate::base::{reason::FallbackReason, recording_id::RecordingId};

/// Why a segment runs in warm-up instead of being recorded: [`Event::Waited`] has it, and
/// [`GraphTree::waiting`](crate::observe::inspect::GraphTree::waiting).
///
/// A recording is found again by what is alive in the memory pool, and where. Behind a warm-up that is something else
/// than behind the recording that takes its place in the next call, so a recording made there would not be found again.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It had not run with these shapes and host values before, and is recorded next.
    NotWarm,
    /// The same segment was warmed up earlier in this call, in a layer before, say. The next call records it; so does
    /// this call, as soon as the same values come again at the same addresses, as in a loop.
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

/// Why a segment that had a recording of this shape was recorded again.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RerecordReason {
    /// Other blocks were alive in the pool than in every recording.
    LiveSet,
    /// A live-in lay elsewhere.
    InputMoved {
        /// Index of the live-in.
        live_in: usize,
    },
    /// The block that a recording gives its result was still held.
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

/// Why a recording has an executable of its own, although recordings may
/// [share](crate::Runtime::share_executables) them and others of its place were there, or it shared one before.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsharedReason {
    /// No other recording of its place has these kernels, launches and edges.
    OtherTopology,
    /// The device cannot run it by another's executable.
    Refused {
        /// What it says.
        why: String,
    },
    /// An update took longer than it may.
    OverBudget {
        /// How long.
        cost: Duration,
        /// How long it may take.
        budget: Duration,
    },
    /// It runs in the same step as another recording of that executable.
    SameStep,
}

impl fmt::Display for UnsharedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTopology => f.write_str("it has other kernels, launches or edges"),
            Self::Refused { why } => write!(f, "the device refuses: {why}"),
            Self::OverBudget { cost, budget } => {
                write!(f, "an update took {cost:?}, and may take {budget:?}")
            }
            Self::SameStep => f.write_str("both run in one step"),
        }
    }
}

/// Where a copied tensor went.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySlot {
    /// A device input was padded into its static buffer.
    Input,
    /// The result of an eager region was moved to its recorded slot.
    Eager,
    /// An output of the call was moved to the results arena; or the result of a recording was moved out of its
    /// block, because that is or was held. The bytes count what was saved from there and put back, too.
    Result,
    /// A live-in was copied to the buffer that its recording reads, because it kept moving; or to where a recording has
    /// it, because nothing else may be recorded. The bytes count what was saved from there and put back, too.
    LiveIn,
    /// A storage was moved out of its step by [`keep`](crate::Eager::keep).
    Kept,
}

/// One thing that happened.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment ran eagerly, in the pool, before its first recording.
    Warmed {
        /// The segment.
        segment: String,
    },
    /// A segment that was warmed up before is not recorded yet: it runs in warm-up once more. [`Warmed`](Self::Warmed)
    /// follows.
    Waited {
        /// The function whose call runs.
        function: &'static str,
        /// The segment.
        segment: String,
        /// Why.
        reason: WaitReason,
    },
    /// A segment was recorded.
    Recorded {
        /// The segment.
        segment: String,
        /// The new recording.
        recording: RecordingId,
        /// Host time from the start of the capture until the recording was ready and launched for the first time.
        capture: Duration,
    },
    /// A new recording runs by the executable of another one.
    Shared {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// The other recording.
        with: RecordingId,
    },
    /// An executable was changed in place to run this recording.
    Updated {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// Host time that it took.
        cost: Duration,
    },
    /// A recording got an executable of its own, although recordings may share them.
    Unshared {
        /// The segment.
        segment: String,
        /// The recording.
        recording: RecordingId,
        /// Why.
        reason: UnsharedReason,
    },
    /// A capture was invalidated from outside this runtime, and is tried again.
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
        /// Why.
        reason: RerecordReason,
    },
    /// A live-in moved so often that from now on its bytes are copied instead.
    SwitchedToCopy {
        /// The segment.
        segment: String,
        /// Index among its device operands.
        live_in: usize,
        /// How often it moved.
        moves: usize,
    },
    /// A function was called with so many distinct shapes that it may be worth a look.
    ManyShapes {
        /// The function.
        function: &'static str,
        /// How many.
        shapes: usize,
    },
    /// `capture_all` begins, and the schedules make so many combinations of sizes that it may be worth a look.
    ManyCaptures {
        /// The function.
        function: &'static str,
        /// How many calls are captured.
        captures: usize,
    },
    /// An eager region ran.
    RanEager {
        /// The boundary.
        boundary: String,
    },
    /// A tensor was copied because it lay elsewhere.
    Copied {
        /// Where to.
        slot: CopySlot,
        /// Bytes.
        bytes: u64,
    },
    /// Something ran without a graph.
    FellBack {
        /// The function.
        function: &'static str,
        /// Why.
        reason: FallbackReason,
    },
    /// `capture_all` repeated a call as often as it does, and it still recorded something new: calls in
    /// service will, too.
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
        /// What [`Runtime::estimate_memory`](crate::Runtime::estimate_memory) said before, if it was asked.
        expected_bytes: Option<u64>,
        /// What it took.
        bytes: u64,
    },
    /// Recordings went because what they use was dropped, because a result is placed better now, or
    /// because their body does something else now.
    Evicted {
        /// How many recordings.
        nodes: usize,
    },
    /// A capture was abandoned because the body failed.
    Aborted {
        /// The segment.
        segment: String,
    },
    /// A replay was compared with its body and was right.
    Audited {
        /// The segment.
        segment: String,
    },
}
