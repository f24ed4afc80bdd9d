//! What the runtime did: typed events, with their reasons.

use std::{fmt, time::Duration};

use crate::{Mode, Site, Support};

/// Where something stands, as reasons say it.
pub(crate) fn place(site: &Site) -> String {
    format!("{}:{}", site.file, site.first_line)
}

/// Why something ran without a graph, or was done again.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// A `#[dims]` symbol is above its largest bucket.
    OverLargestBucket {
        /// The symbol.
        symbol: &'static str,
        /// Its size in this call.
        size: usize,
        /// The largest bucket.
        largest: usize,
    },
    /// Full mode was asked for, but a boundary of the function cannot be captured.
    FullNotSupported {
        /// The boundary, as `file:line`.
        boundary: String,
    },
    /// The whole call was asked for as one graph, but a boundary gives host code a value, which that graph would
    /// hold for ever.
    HostValue {
        /// The boundary, as `file:line`.
        boundary: String,
    },
    /// The whole call was asked for as one graph, but a boundary supports uniform batches only, and this is none.
    BatchNotUniform {
        /// The boundary, as `file:line`.
        boundary: String,
        /// What it supports.
        support: Support,
    },
    /// A boundary supports decodes of one token a sequence, and a decode of this function has more.
    QueryTooLong {
        /// The boundary, as `file:line`.
        boundary: String,
        /// New tokens of a sequence.
        query_len: usize,
    },
    /// The function consists of boundaries: it has no segment that could be a graph for mixed batches.
    NoPieces,
    /// The mode tells batches apart, and nothing says what the batch of this call is.
    UnknownBatch,
    /// The batch is mixed, and the mode makes graphs of uniform decodes only.
    MixedBatch,
    /// The caller does not allow the mode that the batch would get.
    NotAllowed {
        /// The mode.
        mode: Mode,
    },
    /// More adapters are in use than any recording is made for.
    OverMostAdapters {
        /// How many.
        adapters: usize,
        /// The largest count that is captured.
        largest: usize,
    },
    /// One segment was recorded too often for one shape.
    TooManyRecordings {
        /// The segment.
        segment: String,
        /// The limit.
        limit: usize,
    },
    /// Other threads of the process spoilt the capture again and again.
    CaptureSpoilt {
        /// The segment.
        segment: String,
    },
    /// A segment was warmed up in several calls, and each time an operation failed and its body went on: nothing
    /// says what a recording of it must hold.
    NeverWarm {
        /// The segment.
        segment: String,
    },
    /// A live-in lies elsewhere again and again.
    KeepsMoving {
        /// The segment.
        segment: String,
        /// Index among its device operands.
        live_in: usize,
        /// How often it moved.
        moves: usize,
    },
    /// The function was called with more shapes than it may record.
    TooManyShapes {
        /// The limit.
        limit: usize,
    },
    /// The sizes are not among those that the builder lists.
    SizeNotListed {
        /// The `#[dims]` symbols of the list.
        symbols: Vec<&'static str>,
        /// Their sizes in this call.
        sizes: Vec<usize>,
    },
    /// The size of a `#[dims]` symbol may be anything, and the builder wants none such.
    DynamicSize {
        /// The symbol.
        symbol: &'static str,
    },
    /// A segment launches fewer operations than the builder wants in a graph.
    TooFewKernels {
        /// The segment.
        segment: String,
        /// How many it launches.
        kernels: usize,
        /// The limit.
        limit: usize,
    },
    /// Graphs have as much memory as they may.
    OverGraphMemory {
        /// Bytes of the segment pool and of all executables.
        bytes: u64,
        /// The [limit](crate::Runtime::limit_graph_memory).
        limit: u64,
    },
    /// The function is switched off, or the scope in which it is called.
    SwitchedOff,
    /// A policy said so.
    Policy {
        /// Why.
        why: &'static str,
    },
}

impl FallbackReason {
    /// Whether the program asks for it and so expects it: counted as a skip, without a warning, and no error
    /// under `or_error`.
    pub fn is_wanted(&self) -> bool {
        matches!(
            self,
            Self::TooFewKernels { .. }
                | Self::SwitchedOff
                | Self::Policy { .. }
                | Self::MixedBatch
                | Self::NotAllowed { .. }
        )
    }

    /// Whether both are the same thing happening again, if with other sizes.
    pub(crate) fn same_cause(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::OverLargestBucket { symbol: a, largest: m, .. },
                Self::OverLargestBucket { symbol: b, largest: n, .. },
            ) => (a, m) == (b, n),
            (Self::SizeNotListed { symbols: a, .. }, Self::SizeNotListed { symbols: b, .. }) => a == b,
            (
                Self::KeepsMoving { segment: a, live_in: i, .. },
                Self::KeepsMoving { segment: b, live_in: j, .. },
            ) => (a, i) == (b, j),
            (Self::OverGraphMemory { limit: a, .. }, Self::OverGraphMemory { limit: b, .. }) => a == b,
            (Self::OverMostAdapters { largest: a, .. }, Self::OverMostAdapters { largest: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::OverLargestBucket { .. } => "add a bucket of that size, or split the batch",
            Self::FullNotSupported { .. } => "say what the boundary supports, or use `Mode::Piecewise`",
            Self::HostValue { .. } => {
                "keep the value on the device, remove `support` from that boundary, or use `Mode::Piecewise`"
            }
            Self::BatchNotUniform { .. } => {
                "say that the boundary supports `Always`, if it does, or use `Mode::FullAndPiecewise`"
            }
            Self::QueryTooLong { .. } => {
                "say that the boundary supports `UniformBatch`, if it does, or use `Mode::Piecewise`"
            }
            Self::NoPieces => "use `Mode::FullDecodeOnly`",
            Self::UnknownBatch => {
                "say it with `Step::batch`, or give the builder the symbols to tell by (`Batching::requests`)"
            }
            Self::MixedBatch => "use `Mode::FullAndPiecewise`",
            Self::NotAllowed { .. } => "allow it in `BatchScope::allow`",
            Self::OverMostAdapters { .. } => "add that count to `Batching::adapters`",
            Self::TooManyRecordings { .. } => {
                "keep its inputs where they are from call to call, or raise `max_recordings`"
            }
            Self::CaptureSpoilt { .. } => "keep such waits away from captures: capture at start-up",
            Self::NeverWarm { .. } => "let the body return the error of the operation that fails",
            Self::KeepsMoving { .. } => {
                "keep that input where it is from call to call (a `#[host]` input, a `State`), or raise `max_moves`"
            }
            Self::TooManyShapes { .. } => "give the `#[dims]` symbols buckets, or raise `max_shapes`",
            Self::SizeNotListed { .. } => "list that size in `capture_only`, or give the symbol buckets",
            Self::DynamicSize { .. } => "give the symbol buckets or listed sizes, or clear `static_only`",
            Self::TooFewKernels { .. } => "lower `min_kernels`",
            Self::OverGraphMemory { .. } => {
                "raise `Runtime::limit_graph_memory`, or record less: fewer buckets, `capture_only`, \
                 `Runtime::share_executables`"
            }
            Self::SwitchedOff => "switch it on",
            Self::Policy { .. } => "change the policy",
        }
    }
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverLargestBucket { symbol, size, largest } => {
                write!(f, "{symbol} = {size} is above its largest bucket, {largest}")
            }
            Self::FullNotSupported { boundary } => {
                write!(f, "the boundary at {boundary} cannot be captured in full mode")
            }
            Self::HostValue { boundary } => {
                write!(
                    f,
                    "the boundary at {boundary} gives host code a value, which a graph of the whole call would freeze"
                )
            }
            Self::BatchNotUniform { boundary, support } => {
                write!(
                    f,
                    "the boundary at {boundary} supports {support}, and the batch is not a uniform decode"
                )
            }
            Self::QueryTooLong { boundary, query_len } => {
                write!(
                    f,
                    "the boundary at {boundary} supports decodes of one token a sequence, and here one has {query_len}"
                )
            }
            Self::NoPieces => f.write_str("the function has no segment beside its boundaries"),
            Self::UnknownBatch => f.write_str("nothing says whether the batch is a uniform decode"),
            Self::MixedBatch => f.write_str("the batch is mixed, and only uniform decodes are graphs"),
            Self::NotAllowed { mode } => write!(f, "the caller does not allow mode {mode} for this batch"),
            Self::OverMostAdapters { adapters, largest } => {
                write!(f, "{adapters} adapters are in use, and captures are for {largest} at most")
            }
            Self::CaptureSpoilt { segment } => {
                write!(
                    f,
                    "another thread spoilt each capture of {segment}; device-wide waits (`cuCtxSynchronize`, \
                     `cudaDeviceSynchronize`) do that, stream or event waits do not"
                )
            }
            Self::TooManyRecordings { segment, limit } => {
                write!(f, "{segment} was recorded {limit} times for one shape")
            }
            Self::NeverWarm { segment } => {
                write!(f, "an operation of {segment} fails in each warm-up, and its body goes on")
            }
            Self::KeepsMoving { segment, live_in, moves } => {
                write!(f, "live-in {live_in} of {segment} moved {moves} times")
            }
            Self::TooManyShapes { limit } => {
                write!(f, "{limit} shapes are recorded, as many as `max_shapes` allows")
            }
            Self::SizeNotListed { symbols, sizes } => {
                write!(f, "{} = {sizes:?} is not listed in `capture_only`", symbols.join(", "))
            }
            Self::DynamicSize { symbol } => {
                write!(f, "{symbol} may have any size, and `static_only` is set")
            }
            Self::TooFewKernels { segment, kernels, limit } => {
                write!(f, "{segment} launches {kernels} operations, `min_kernels` is {limit}")
            }
            Self::OverGraphMemory { bytes, limit } => {
                write!(f, "graphs have {bytes} bytes, and may have {limit}")
            }
            Self::SwitchedOff => f.write_str("graphs are switched off here"),
            Self::Policy { why } => write!(f, "the policy says: {why}"),
        }
    }
}

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
        why: WaitReason,
    },
    /// A segment was recorded.
    Recorded {
        /// The segment.
        segment: String,
        /// Its new node.
        node: usize,
        /// Host time from the start of the capture until the recording was ready and launched for the first time.
        capture: Duration,
    },
    /// A new recording runs by the executable of another one.
    Shared {
        /// The segment.
        segment: String,
        /// Its node.
        node: usize,
        /// The other's node.
        with: usize,
    },
    /// An executable was changed in place to run this recording.
    Updated {
        /// The segment.
        segment: String,
        /// Its node.
        node: usize,
        /// Host time that it took.
        cost: Duration,
    },
    /// A recording got an executable of its own, although recordings may share them.
    Unshared {
        /// The segment.
        segment: String,
        /// Its node.
        node: usize,
        /// Why.
        why: UnsharedReason,
    },
    /// A capture was spoilt from outside this runtime, and is tried again.
    Spoilt {
        /// The segment.
        segment: String,
    },
    /// A recording ran.
    Replayed {
        /// The segment.
        segment: String,
        /// Its node.
        node: usize,
    },
    /// A segment is recorded although it has recordings for this shape.
    Rerecorded {
        /// The segment.
        segment: String,
        /// Why.
        why: RerecordReason,
    },
    /// A live-in moved so often that from now on its bytes are copied instead.
    Demoted {
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
        why: FallbackReason,
    },
    /// `capture_all` repeated a call as often as it does, and it still recorded something new: calls in
    /// service will, too.
    Unsettled {
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
        /// How many nodes.
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
