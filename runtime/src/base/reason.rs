//! Reasons why something ran without a graph.

use std::fmt;

use crate::{Mode, Site, Support};

/// Formats a position for reasons.
pub(crate) fn place(site: &Site) -> String {
    format!("{}:{}", site.file, site.first_line)
}

/// The reason why something ran without a graph, or was done again.
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
    /// Full mode was requested, but a boundary of the function cannot be captured.
    FullNotSupported {
        /// The boundary, as `file:line`.
        boundary: String,
    },
    /// The whole call was requested as one graph, but a boundary passes a value to host code, which that
    /// graph would freeze.
    HostValue {
        /// The boundary, as `file:line`.
        boundary: String,
    },
    /// The whole call was requested as one graph, but a boundary supports only uniform batches, and this
    /// batch is not uniform.
    BatchNotUniform {
        /// The boundary, as `file:line`.
        boundary: String,
        /// The support of the boundary.
        support: Support,
    },
    /// A boundary supports decodes of one token per sequence, and a decode of this function has more.
    QueryTooLong {
        /// The boundary, as `file:line`.
        boundary: String,
        /// The number of new tokens per sequence.
        query_len: usize,
    },
    /// The function consists only of boundaries: it has no segment that could be a graph for mixed batches.
    NoPieces,
    /// The mode distinguishes batches, and the batch of this call is unknown.
    UnknownBatch,
    /// The batch is mixed, and the mode captures only uniform decodes.
    MixedBatch,
    /// The caller does not allow the mode that the batch would get.
    NotAllowed {
        /// The mode.
        mode: Mode,
    },
    /// More adapters are in use than any recording supports.
    OverMostAdapters {
        /// The number of adapters.
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
    /// Other threads of the process invalidated the capture repeatedly.
    CaptureInvalidated {
        /// The segment.
        segment: String,
    },
    /// A segment was warmed up in several calls, and each time an operation failed and its body continued, so
    /// it is unknown what a recording must contain.
    NeverWarm {
        /// The segment.
        segment: String,
    },
    /// The address of a live-in changes repeatedly.
    KeepsMoving {
        /// The segment.
        segment: String,
        /// The index among the segment's device operands.
        live_in: usize,
        /// The number of times that it moved.
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
    /// A `#[dims]` symbol has no fixed set of sizes, and the builder excludes such symbols.
    DynamicSize {
        /// The symbol.
        symbol: &'static str,
    },
    /// A segment launches fewer operations than the builder requires of a graph.
    TooFewKernels {
        /// The segment.
        segment: String,
        /// The number of operations.
        kernels: usize,
        /// The limit.
        limit: usize,
    },
    /// Graphs already use as much memory as the limit allows.
    OverGraphMemory {
        /// The size of the segment pool and of all executables, in bytes.
        bytes: u64,
        /// The [limit](crate::Runtime::limit_graph_memory).
        limit: u64,
    },
    /// A segment has conditional nodes, and the device does not.
    NoConditionalNodes {
        /// The segment.
        segment: String,
        /// The version of the driver.
        found: String,
    },
    /// The function, or the scope in which it is called, is switched off.
    SwitchedOff,
    /// A policy decided it.
    Policy {
        /// The policy's reason.
        reason: &'static str,
    },
}

impl FallbackReason {
    /// Returns whether the program requested this: it is then counted as a skip, without a warning, and is
    /// not an error under `deny_fallback`.
    pub fn is_wanted(&self) -> bool {
        matches!(
            self,
            Self::TooFewKernels { .. }
                | Self::NoConditionalNodes { .. }
                | Self::SwitchedOff
                | Self::Policy { .. }
                | Self::MixedBatch
                | Self::NotAllowed { .. }
        )
    }

    /// Returns whether both have the same cause, possibly with different sizes.
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

    /// Returns the remedy.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::OverLargestBucket { .. } => "add a bucket of that size, or split the batch",
            Self::FullNotSupported { .. } => "declare what the boundary supports, or use `Mode::Piecewise`",
            Self::HostValue { .. } => {
                "keep the value on the device, remove `support` from that boundary, or use `Mode::Piecewise`"
            }
            Self::BatchNotUniform { .. } => {
                "declare that the boundary supports `Always`, if it does, or use `Mode::FullAndPiecewise`"
            }
            Self::QueryTooLong { .. } => {
                "declare that the boundary supports `UniformBatch`, if it does, or use `Mode::Piecewise`"
            }
            Self::NoPieces => "use `Mode::FullDecodeOnly`",
            Self::UnknownBatch => {
                "declare it with `Step::batch`, or give the builder the symbols to infer it from (`Batching::requests`)"
            }
            Self::MixedBatch => "use `Mode::FullAndPiecewise`",
            Self::NotAllowed { .. } => "allow it in `BatchGuard::allow`",
            Self::OverMostAdapters { .. } => "add that count to `Batching::adapters`",
            Self::TooManyRecordings { .. } => {
                "keep its inputs where they are from call to call, or raise `max_recordings`"
            }
            Self::CaptureInvalidated { .. } => "keep such waits away from captures: capture at start-up",
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
            Self::NoConditionalNodes { .. } => "update the driver",
            Self::SwitchedOff => "switch it on",
            Self::Policy { .. } => "change the policy",
        }
    }
}

const INVALIDATES: &str =
    "device-wide waits (`cuCtxSynchronize`, `cudaDeviceSynchronize`) do that, stream or event waits do not";

/// Writes what the boundary at a place does, or cannot.
fn at(f: &mut fmt::Formatter<'_>, boundary: &str, does: impl fmt::Display) -> fmt::Result {
    write!(f, "the boundary at {boundary} {does}")
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverLargestBucket { symbol, size, largest } => {
                write!(f, "{symbol} = {size} is above its largest bucket, {largest}")
            }
            Self::FullNotSupported { boundary } => at(f, boundary, "cannot be captured in full mode"),
            Self::HostValue { boundary } => {
                at(f, boundary, "passes a value to host code, which a graph of the whole call would freeze")
            }
            Self::BatchNotUniform { boundary, support } => {
                at(f, boundary, format_args!("supports {support}, and the batch is not a uniform decode"))
            }
            Self::QueryTooLong { boundary, query_len } => {
                let does = "supports decodes of one token per sequence";
                at(f, boundary, format_args!("{does}, and here a sequence has {query_len}"))
            }
            Self::NoPieces => f.write_str("the function has no segment besides its boundaries"),
            Self::UnknownBatch => f.write_str("it is not known whether the batch is a uniform decode"),
            Self::MixedBatch => f.write_str("the batch is mixed, and only uniform decodes are graphs"),
            Self::NotAllowed { mode } => write!(f, "the caller does not allow mode {mode} for this batch"),
            Self::OverMostAdapters { adapters, largest } => {
                write!(f, "{adapters} adapters are in use, and captures support {largest} at most")
            }
            Self::CaptureInvalidated { segment } => {
                write!(f, "another thread invalidated each capture of {segment}; {INVALIDATES}")
            }
            Self::TooManyRecordings { segment, limit } => {
                write!(f, "{segment} was recorded {limit} times for one shape")
            }
            Self::NeverWarm { segment } => {
                write!(f, "an operation of {segment} fails in each warm-up, and its body continues")
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
                write!(f, "graphs use {bytes} bytes, and may use {limit}")
            }
            Self::NoConditionalNodes { segment, found } => {
                write!(f, "{segment} has conditional nodes, which a driver for CUDA {found} does not have")
            }
            Self::SwitchedOff => f.write_str("graphs are switched off here"),
            Self::Policy { reason } => write!(f, "decided by the policy: {reason}"),
        }
    }
}
