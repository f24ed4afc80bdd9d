//! The errors of the runtime. Each names its cause and what to do about it.

use crate::{BatchDescriptor, DType, ModeSet, base::reason::FallbackReason};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong.
///
/// No variant leaves the runtime unusable, except [`ContextLost`](Self::ContextLost).
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too many dimensions.
    #[error(
        "rank {rank} is above the limit of {}; merge dimensions with `ops::reshape`",
        crate::base::rank::MAX_RANK
    )]
    Rank {
        /// What was asked for.
        rank: usize,
    },

    /// The number of elements does not fit.
    #[error("a tensor of shape {shape:?} has more elements than can be addressed")]
    TooLarge {
        /// What was asked for. Of a dimension that a bucket pads, the size of the bucket: that many rows would be there.
        shape: Vec<usize>,
    },

    /// Operands whose shapes do not fit together.
    #[error("{op}: {why}; shapes are {shapes:?}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// All operand shapes, in order. Of a dimension that a bucket pads, the size of the bucket.
        shapes: Vec<Vec<usize>>,
        /// What does not fit, and what would; where a bucket made a size larger, also what it really is.
        why: String,
    },

    /// An axis outside the tensor's rank.
    #[error("{op}: axis {axis} of a tensor of rank {rank}; axes count from 0")]
    Axis {
        /// The operation.
        op: &'static str,
        /// What was given.
        axis: usize,
        /// What there is.
        rank: usize,
    },

    /// A value argument that makes no sense.
    #[error("{op}: {why}")]
    Argument {
        /// The operation or function.
        op: &'static str,
        /// What is wrong, and what would be right.
        why: String,
    },

    /// Memory of another element type than asked for.
    #[error("{what} holds {found}, {expected} is needed; cast it with `ops::cast`")]
    DTypeMismatch {
        /// What was looked at.
        what: String,
        /// What was asked for.
        expected: DType,
        /// What it is.
        found: DType,
    },

    /// Two runtimes in one operation.
    #[error(
        "{op}: operands belong to different runtimes; copy through the host (`step.read`, then `step.tensor`)"
    )]
    DifferentRuntimes {
        /// The operation.
        op: &'static str,
    },

    /// An operation that would mix padding into real values.
    #[error(
        "{op}: axis {axis} is padded to a bucket of {symbol}, and this would mix padding into real values; \
         keep {symbol} as a dimension of its own, use an operation that knows the real rows (`ops::masked_mean`, \
         `ops::masked_sum`, `ops::attention` with lengths or positions), or do it in an `#[eager]` region"
    )]
    PaddedMix {
        /// The operation.
        op: &'static str,
        /// The padded axis.
        axis: usize,
        /// The `#[dims]` symbol.
        symbol: String,
    },

    /// The size of a padded dimension, used as a number.
    #[error(
        "{op}{}: the size along {symbol} is padded to a bucket and is not a number on the host, where it would be the \
         bucket's; pass it on as it is in a shape (`ops::full(x.scope(), (x.dim(0), 4), 0.0)`), compute with the real \
         size on the device (`ops::size`), or read it in an `#[eager(cx)]` region (`cx.size`)",
        at.map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default()
    )]
    PaddedSize {
        /// What it was used for.
        op: &'static str,
        /// The `#[dims]` symbol.
        symbol: String,
        /// Where, if that is known.
        at: Option<&'static std::panic::Location<'static>>,
    },

    /// A device operation in host code, between segments.
    #[error(
        "{op} runs outside any segment or eager region of `{function}` (a loop header, a condition or a \
         match head, say); bind its result with `let` on a line of its own, before that expression"
    )]
    OutsideSegment {
        /// The operation.
        op: &'static str,
        /// The running function.
        function: &'static str,
    },

    /// A capability used while a segment runs.
    #[error(
        "{call} inside the segment {segment}: reading device data needs an `#[eager(cx)]` region, or the step after the call"
    )]
    CapabilityInSegment {
        /// What was called.
        call: &'static str,
        /// Where.
        segment: String,
    },

    /// A graph called while another call runs.
    #[error(
        "`{inner}` is called inside `{outer}`; make it a function with boundaries and write `#[piecewise] {inner}(…)`"
    )]
    NestedCall {
        /// The running function.
        outer: &'static str,
        /// The one called.
        inner: &'static str,
    },

    /// Branches of a `join` that depend on each other.
    #[error(
        "{op} in a branch of `join` uses memory that {other} in another branch uses too, and one of them writes \
         it; branches run side by side, in no order: return the value from its branch and go on with it after \
         the `join`, or put both into one branch"
    )]
    BranchesShare {
        /// The operation of the later branch.
        op: &'static str,
        /// That of the earlier one.
        other: &'static str,
    },

    /// A call that a capture forbids.
    #[error("`{call}` is not possible while a capture is under way")]
    RefusedInCapture {
        /// What was called.
        call: &'static str,
    },

    /// The body did something else when it was recorded than when it warmed up.
    #[error(
        "{segment}: operation {index} was {warm} in warm-up and {recorded} when recorded; the body depends on \
         something that is not a live-in (a global, a thread-local, a clock): pass it as a parameter, marked `#[key]` or `#[host]`"
    )]
    TraceMismatch {
        /// The segment.
        segment: String,
        /// Which operation, from 0.
        index: usize,
        /// What warm-up did there.
        warm: String,
        /// What the recording did there.
        recorded: String,
    },

    /// A recording would bake an address that its key does not hold.
    #[error(
        "{segment}: {op} uses memory at {addr:#x} that is not a live-in of the segment; a replay would not notice \
         when it moves: pass the tensor, parameter or state as an argument of the function"
    )]
    UnkeyedAddress {
        /// The segment.
        segment: String,
        /// The operation.
        op: &'static str,
        /// The address.
        addr: u64,
    },

    /// A block allocated in a segment that nobody owns at its end.
    #[error(
        "{segment}: {bytes} bytes allocated by {op} are still allocated at its end but are not part of an output; was a tensor leaked (`mem::forget`, a global)?"
    )]
    UnownedAllocation {
        /// The segment.
        segment: String,
        /// The operation that allocated.
        op: &'static str,
        /// Size of the block.
        bytes: u64,
    },

    /// The live memory of an arena is not that of the tensors in it.
    #[error(
        "{arena}: {bytes} bytes at {addr:#x}, allocated by {op} in {site}, {fault}; this is a bug in the runtime, \
         please report it (`Runtime::reset` gives the memory back)"
    )]
    MemoryAccounting {
        /// The arena.
        arena: &'static str,
        /// Too much, or too little.
        fault: MemoryFault,
        /// The operation that allocated the block, as far as it is known.
        op: &'static str,
        /// The segment or region where that was.
        site: String,
        /// Size of the block.
        bytes: u64,
        /// Its address.
        addr: u64,
    },

    /// A tensor used in a recording after its memory was given back.
    #[error(
        "{op}: the tensor produced by {producer} is used later than during warm-up, after its memory was freed; the \
         body depends on something that is not a live-in (a global, a thread-local, a clock): pass it as a \
         parameter, marked `#[key]` or `#[host]`"
    )]
    UsedAfterLastUse {
        /// Where it was used.
        op: &'static str,
        /// The operation that made it.
        producer: &'static str,
    },

    /// A replay gave other values than the body.
    #[error("{segment}: audit: {what} of the replay differs from the body run eagerly; {detail}")]
    AuditMismatch {
        /// The segment.
        segment: String,
        /// Which output or state.
        what: String,
        /// The first difference.
        detail: String,
    },

    /// A tensor without memory of its own: its capture was abandoned, or its call ended without it as
    /// an output.
    #[error(
        "{op}: this tensor was made in a segment that failed, or was left behind by the call that it belongs to; \
         its memory may hold other values by now: compute it again, or return it from the call"
    )]
    NeverComputed {
        /// Where it was used.
        op: &'static str,
    },

    /// A fallback that the configuration forbids.
    #[error("{function}: {reason}, and `deny_fallback` forbids falling back; {}", reason.remedy())]
    FallbackForbidden {
        /// The function.
        function: &'static str,
        /// Why it would fall back.
        reason: FallbackReason,
    },

    /// A batch for which the caller allows no mode that it could have.
    #[error(
        "{function}: for a batch of {batch}, the caller allows {allowed}, and none of it is possible{}; allow \
         another mode in `BatchScope::allow`, or leave the batch out of this step",
        why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    NoAllowedMode {
        /// The function.
        function: &'static str,
        /// The batch.
        batch: BatchDescriptor,
        /// What is allowed.
        allowed: ModeSet,
        /// Why none of it is possible, where more than the mode of the graph is in the way.
        why: Option<FallbackReason>,
    },

    /// A call that records something new however often it is repeated, where `deny_fallback` is set.
    #[error(
        "`{function}`: for sizes {sizes:?}, every pass of `capture_all` records something new in {}; something \
         in their keys changes from call to call (a `#[key]`, a shape, an address): pass it as `#[host]`, or \
         keep it the same",
        segments.join(", ")
    )]
    NotConverged {
        /// The function.
        function: &'static str,
        /// The sizes of its `#[dims]` symbols.
        sizes: Vec<usize>,
        /// The segments that were warmed up or recorded in the last pass.
        segments: Vec<String>,
    },

    /// A call that changes memory or recordings, made by the plan of an estimate.
    #[error(
        "`Runtime::{call}` is called by the plan of `Runtime::estimate_memory`, which sets the recordings aside and \
         must find their memory as it was; call it before or after the estimate, and let the plan only capture"
    )]
    InsideEstimate {
        /// What was called.
        call: &'static str,
    },

    /// A recording whose memory is not there any more. Nothing was launched.
    #[error(
        "{segment}: a replay needs the first {needed} bytes of {arena}, and {committed} are committed; this is a fault \
         of the runtime, please report it (`Runtime::prime` commits them, `Runtime::reset` records anew)"
    )]
    Uncommitted {
        /// The segment.
        segment: String,
        /// The arena.
        arena: &'static str,
        /// Bytes that the recording uses, from the arena's start.
        needed: u64,
        /// Bytes that are there.
        committed: u64,
    },

    /// A recording after capture was closed.
    #[error(
        "{segment}: nothing is recorded for this input and capture is closed (`Runtime::close_capture`); capture it at start-up"
    )]
    CaptureClosed {
        /// The segment.
        segment: String,
    },

    /// Inputs of one call that disagree.
    #[error(
        "`{function}`: dimension {symbol} is {first} in `{first_input}` and {second} in `{second_input}`"
    )]
    DimsDisagree {
        /// The function.
        function: &'static str,
        /// The symbol.
        symbol: String,
        /// Size it first had.
        first: usize,
        /// Where.
        first_input: &'static str,
        /// Size it had then.
        second: usize,
        /// Where.
        second_input: &'static str,
    },

    /// An input that does not fit its `#[dims]`.
    #[error("`{function}`: input `{input}`: {why}")]
    Input {
        /// The function.
        function: &'static str,
        /// The parameter.
        input: &'static str,
        /// What does not fit, and what would.
        why: String,
    },

    /// A configuration that cannot work.
    #[error("{what}: {why}")]
    Config {
        /// What was configured.
        what: String,
        /// What is wrong, and what would be right.
        why: String,
    },

    /// Loading a model failed; all problems at once.
    #[error("{source_name} does not fit the model:{}", listed(problems))]
    Load {
        /// The file or map.
        source_name: String,
        /// Every missing, misshapen or mistyped tensor; the message shows the first twenty.
        problems: Vec<String>,
    },

    /// A file that cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },

    /// An index that a kernel found out of range.
    #[error(
        "{op}: index {index} is out of range (there are {bound} rows); affected rows read as zeros and are not written"
    )]
    IndexOutOfRange {
        /// The operation.
        op: &'static str,
        /// The first such index.
        index: u64,
        /// How many rows there are.
        bound: u64,
    },

    /// No memory left.
    #[error("out of memory on {device}: {bytes} bytes for {what}; free tensors or use smaller buckets")]
    OutOfMemory {
        /// The device.
        device: String,
        /// What was asked for.
        bytes: u64,
        /// What it was for.
        what: &'static str,
    },

    /// The device failed; the call had no effect and the runtime is usable.
    #[error("{device}: {call} failed: {why}")]
    Device {
        /// The device.
        device: String,
        /// What was called.
        call: &'static str,
        /// What it said.
        why: String,
    },

    /// The device is gone. Everything of this runtime fails from here on. A new runtime works on the CPU; on a GPU the
    /// driver gives a process one context for all, so that only a new process can use it again.
    #[error(
        "{device} is lost: {why}; its memory cannot be read any more, and it is usable again in a new process (on the \
         CPU: in a new runtime)"
    )]
    ContextLost {
        /// The device.
        device: String,
        /// What it said.
        why: String,
    },

    /// Somebody else launched on the runtime's stream while a segment was recorded.
    #[error(
        "something else was launched on the stream of {device} while a segment was recorded; it did not run, and the \
         recording, of which it would have become a part, was dropped; launch on a stream of your own, or on \
         `cx.cuda_stream()` in an `#[eager(cx)]` region"
    )]
    ForeignWork {
        /// The device.
        device: String,
    },

    /// A device that cannot be used.
    #[error("{device} cannot be used: {why}")]
    NoDevice {
        /// What was asked for.
        device: String,
        /// What is missing and how to get it.
        why: String,
    },
}

/// What is wrong with a block of memory.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// Alive, and no tensor has it.
    Untracked,
    /// A tensor has it, and it is not alive.
    Missing,
    /// Alive beyond the memory that the arena has.
    Uncommitted,
}

impl std::fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Untracked => "are allocated but belong to no tensor",
            Self::Missing => "belong to a tensor but are not allocated",
            Self::Uncommitted => "are allocated beyond the committed memory",
        })
    }
}

impl Error {
    /// A shape error with its operands.
    pub(crate) fn shape(op: &'static str, shapes: &[&[usize]], why: impl Into<String>) -> Self {
        Self::Shape { op, shapes: shapes.iter().map(|s| s.to_vec()).collect(), why: why.into() }
    }
}

/// One line each, as many as fit on a screen.
fn listed(problems: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = problems.iter().take(SHOWN).map(|p| format!("\n  - {p}")).collect();
    if let Some(more) = problems.len().checked_sub(SHOWN).filter(|&n| n > 0) {
        text += &format!("\n  … and {more} more");
    }
    text
}
