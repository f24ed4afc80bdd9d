//! The errors of the runtime. Each names its cause and the remedy.

mod masked_form;
mod memory_fault;
mod operation;
mod text;

use crate::{BatchDescriptor, DType, ModeSet, base::reason::FallbackReason};

pub use memory_fault::MemoryFault;
use text::{listed, remedy_for};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the runtime.
///
/// No variant leaves the runtime unusable, except [`ContextLost`](Self::ContextLost).
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A shape with too many dimensions.
    #[error(
        "rank {rank} is above the limit of {}; merge dimensions with `ops::reshape`",
        crate::base::rank::MAX_RANK
    )]
    Rank {
        /// The requested rank.
        rank: usize,
    },

    /// A shape whose number of elements overflows.
    #[error("a tensor of shape {shape:?} has more elements than can be addressed")]
    TooLarge {
        /// The requested shape. For a dimension that a bucket pads, the size of the bucket, since that many
        /// rows would exist.
        shape: Vec<usize>,
    },

    /// Operands whose shapes do not match.
    #[error("{op}: {reason}; shapes are {shapes:?}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// The shapes of all operands, in order. For a dimension that a bucket pads, the size of the bucket.
        shapes: Vec<Vec<usize>>,
        /// The mismatch and the expected shape; if a bucket enlarged a size, also the real size.
        reason: String,
    },

    /// An axis outside the tensor's rank.
    #[error("{op}: axis {axis} of a tensor of rank {rank}; axes count from 0")]
    Axis {
        /// The operation.
        op: &'static str,
        /// The given axis.
        axis: usize,
        /// The rank of the tensor.
        rank: usize,
    },

    /// More elements were appended to a log than it has room for; those beyond are lost.
    #[error(
        "{appended} elements were appended in one reading of a log for {capacity}; make the log larger, or begin a reading \
         (`PinnedLog::reader`) before each call"
    )]
    LogFull {
        /// The number of elements for which it has room.
        capacity: usize,
        /// The number of elements that were appended so far.
        appended: usize,
    },

    /// An invalid value of an argument.
    #[error("{op}: {reason}")]
    Argument {
        /// The operation or function.
        op: &'static str,
        /// The problem, and a valid value.
        reason: String,
    },

    /// Memory with a different element type than requested.
    #[error("{what} holds {found}, {expected} is needed; cast it with `ops::cast`")]
    DTypeMismatch {
        /// The value that was accessed.
        what: String,
        /// The requested type.
        expected: DType,
        /// The actual type.
        found: DType,
    },

    /// A weight in another format than requested.
    #[error(
        "{op}: the weight is in {expected}, and {found} was given or asked for; a weight keeps its format, which recordings contain: \
         convert what is written, or make another weight"
    )]
    BlockFormat {
        /// The function.
        op: &'static str,
        /// The format of the weight.
        expected: String,
        /// The other format.
        found: String,
    },

    /// A weight that nothing can write, since its memory is that of a mapped file.
    #[error(
        "{op}: the weight is used from where its file is mapped, which nothing writes; copy its bytes (`Weight::blocks`, `Param::new`), or load \
         it from a file that is read instead of mapped"
    )]
    ReadOnly {
        /// The function.
        op: &'static str,
    },

    /// A weight was used while its memory is given back.
    #[error("{op}: the weights sleep, and have no memory; wake them first (`Runtime::wake`)")]
    Asleep {
        /// The operation, or the use.
        op: &'static str,
    },

    /// A weight was used that holds nothing since its contents were discarded.
    #[error(
        "{op}: the weight holds nothing, since its contents were discarded (`Sleep::Discard`); write all of it before it is used \
         (`Param::write`, `Weight::write_blocks`)"
    )]
    Discarded {
        /// The operation, or the use.
        op: &'static str,
    },

    /// Operands of two runtimes in one operation.
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
         keep {symbol} as a dimension of its own, use {}, or do it in an `#[eager]` region",
        masked_form::sentence(*instead)
    )]
    PaddedMix {
        /// The operation.
        op: &'static str,
        /// The padded axis.
        axis: usize,
        /// The `#[dims]` symbol.
        symbol: String,
        /// The operation on floats that does the same to the real elements, if there is one.
        instead: Option<&'static str>,
    },

    /// The size of a padded dimension was used as a number.
    #[error(
        "{op}{}: the size along {symbol} is padded to a bucket and is not a number on the host, where it would be the \
         bucket's; use it unchanged in a shape (`ops::full(x.scope(), (x.dim(0), 4), 0.0)`), compute with the real \
         size on the device (`ops::size`), or read it in an `#[eager(cx)]` region (`cx.size`)",
        at.map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default()
    )]
    PaddedSize {
        /// The operation that used it.
        op: &'static str,
        /// The `#[dims]` symbol.
        symbol: String,
        /// The position of the use, if known.
        at: Option<&'static std::panic::Location<'static>>,
    },

    /// A device operation was called in host code, between segments.
    #[error(
        "{op} runs outside any segment or eager region of `{function}` (for example a loop header, a \
         condition or the head of a `match`); bind its result with `let` on a line of its own, before that expression"
    )]
    OutsideSegment {
        /// The operation.
        op: &'static str,
        /// The running function.
        function: &'static str,
    },

    /// A capability was used while a segment runs.
    #[error(
        "{call} inside the segment {segment}: reading device data needs an `#[eager(cx)]` region, or the step after the call"
    )]
    CapabilityInSegment {
        /// The method that was called.
        call: &'static str,
        /// The segment.
        segment: String,
    },

    /// A graph was called while another call runs.
    #[error(
        "`{inner}` is called inside `{outer}`; make it a function with boundaries and write `#[piecewise] {inner}(…)`"
    )]
    NestedCall {
        /// The running function.
        outer: &'static str,
        /// The function that was called.
        inner: &'static str,
    },

    /// Branches of a `join` that depend on each other.
    #[error(
        "{op} in a branch of `join` uses memory that {other} in another branch uses too, and one of them writes \
         it; branches run in parallel, in no particular order: return the value from its branch and use it \
         after the `join`, or put both into one branch"
    )]
    BranchesShare {
        /// The operation in the later branch.
        op: &'static str,
        /// The operation in the earlier branch.
        other: &'static str,
    },

    /// A call that is not allowed during a capture.
    #[error("`{call}` is not possible while a capture is under way")]
    RefusedInCapture {
        /// The function that was called.
        call: &'static str,
    },

    /// The body behaved differently when it was recorded than during warm-up.
    #[error(
        "{segment}: operation {index} was {warm} in warm-up and {recorded} when recorded; the body depends on \
         something that is not a live-in (a global, a thread-local, a clock): pass it as a parameter, marked `#[key]` or `#[host]`"
    )]
    TraceMismatch {
        /// The segment.
        segment: String,
        /// The index of the operation, from 0.
        index: usize,
        /// The operation during warm-up.
        warm: String,
        /// The operation in the recording.
        recorded: String,
    },

    /// A recording would contain an address that is not part of its key.
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

    /// A block allocated in a segment that has no owner at its end.
    #[error(
        "{segment}: {bytes} bytes allocated by {op} are still allocated at its end but are not part of an output; was a tensor leaked (`mem::forget`, a global)?"
    )]
    UnownedAllocation {
        /// The segment.
        segment: String,
        /// The operation that allocated.
        op: &'static str,
        /// The size of the block, in bytes.
        bytes: u64,
    },

    /// The live memory of an arena does not match the tensors in it.
    #[error(
        "{arena}: {bytes} bytes at {addr:#x}, allocated by {op} in {site}, {fault}; this is a bug in the runtime, \
         please report it (`Runtime::reset` releases the memory)"
    )]
    MemoryAccounting {
        /// The arena.
        arena: &'static str,
        /// The kind of mismatch.
        fault: MemoryFault,
        /// The operation that allocated the block, if known.
        op: &'static str,
        /// The segment or region that allocated it.
        site: String,
        /// The size of the block, in bytes.
        bytes: u64,
        /// The address of the block.
        addr: u64,
    },

    /// A tensor was used in a recording after its memory was freed.
    #[error(
        "{op}: the tensor produced by {producer} is used later than during warm-up, after its memory was freed; the \
         body depends on something that is not a live-in (a global, a thread-local, a clock): pass it as a \
         parameter, marked `#[key]` or `#[host]`"
    )]
    UsedAfterLastUse {
        /// The operation that used it.
        op: &'static str,
        /// The operation that produced it.
        producer: &'static str,
    },

    /// A replay computed different values than the body.
    #[error("{segment}: audit: {what} of the replay differs from the body run eagerly; {detail}")]
    AuditMismatch {
        /// The segment.
        segment: String,
        /// The output or state that differs.
        what: String,
        /// The first difference.
        detail: String,
    },

    /// A tensor without memory: its capture was aborted, or its call ended without returning it.
    #[error(
        "{op}: this tensor was made in a segment that failed, or was left behind by the call that it belongs to; \
         its memory may hold other values by now: compute it again, or return it from the call"
    )]
    NeverComputed {
        /// The operation that used it.
        op: &'static str,
    },

    /// A fallback that the configuration does not allow.
    #[error("{function}: {reason}, and `deny_fallback` forbids falling back; {}", reason.remedy())]
    FallbackForbidden {
        /// The function.
        function: &'static str,
        /// The reason for the fallback.
        reason: FallbackReason,
    },

    /// A batch for which the caller allows no mode that is possible.
    #[error(
        "{function}: for a batch of {batch}, the caller allows {allowed}, and none of it is possible{}; allow \
         another mode in `BatchGuard::allow`, or leave the batch out of this step",
        reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
    )]
    NoAllowedMode {
        /// The function.
        function: &'static str,
        /// The batch.
        batch: BatchDescriptor,
        /// The modes that the caller allows.
        allowed: ModeSet,
        /// The reason why none of them is possible, if it is not only the mode of the graph.
        reason: Option<FallbackReason>,
    },

    /// A call that records something new each time it is repeated, with `deny_fallback`.
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

    /// The plan of an estimate made a call that changes memory or recordings.
    #[error(
        "`Runtime::{call}` is called by the plan of `Runtime::estimate_memory`, which sets the recordings aside and \
         must find their memory as it was; call it before or after the estimate, and let the plan only capture"
    )]
    InsideEstimate {
        /// The method that was called.
        call: &'static str,
    },

    /// The memory of a recording is no longer committed. Nothing was launched.
    #[error(
        "{segment}: a replay needs the first {needed} bytes of {arena}, and {committed} are committed; this is a bug \
         in the runtime, please report it (`Runtime::preallocate` commits them, `Runtime::reset` makes new recordings)"
    )]
    Uncommitted {
        /// The segment.
        segment: String,
        /// The arena.
        arena: &'static str,
        /// The number of bytes that the recording uses, from the start of the arena.
        needed: u64,
        /// The number of committed bytes.
        committed: u64,
    },

    /// A call would have to be recorded after capture was closed.
    #[error(
        "{segment}: nothing is recorded for this input and capture is closed (`Runtime::close_capture`); capture it at start-up"
    )]
    CaptureClosed {
        /// The segment.
        segment: String,
    },

    /// Inputs of one call disagree on a dimension.
    #[error(
        "`{function}`: dimension {symbol} is {first} in `{first_input}` and {second} in `{second_input}`"
    )]
    DimsDisagree {
        /// The function.
        function: &'static str,
        /// The symbol.
        symbol: String,
        /// The first size.
        first: usize,
        /// The input with the first size.
        first_input: &'static str,
        /// The second size.
        second: usize,
        /// The input with the second size.
        second_input: &'static str,
    },

    /// An input that does not match its `#[dims]`.
    #[error("`{function}`: input `{input}`: {reason}")]
    Input {
        /// The function.
        function: &'static str,
        /// The parameter.
        input: &'static str,
        /// The mismatch and the expected shape.
        reason: String,
    },

    /// An invalid configuration.
    #[error("{what}: {reason}")]
    Config {
        /// The option that was configured.
        what: String,
        /// The problem, and a valid value.
        reason: String,
    },

    /// Loading a model failed; reports all problems together.
    #[error("{source_name} does not fit the model:{}", listed(problems))]
    Load {
        /// The file or map.
        source_name: String,
        /// Every missing, misshapen or mistyped tensor; the message shows the first twenty.
        problems: Vec<String>,
    },

    /// A file that cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        reason: String,
    },

    /// An operation that may not be captured was called in a segment.
    #[error(
        "{op} may not be captured, but is called in {segment}; call it in an `#[eager(cx)]` region, which runs on every call"
    )]
    NotCapturable {
        /// The operation.
        op: &'static str,
        /// The segment, by its function and line.
        segment: String,
    },

    /// An operation whose results may differ from run to run was called in the deterministic mode.
    #[error(
        "{op} is not known to return the same values in every run, and the deterministic mode (`Numerics::deterministic`) is \
         on; if its code adds in a fixed order and never measures which algorithm to use, declare it with \
         `CustomOpBuilder::deterministic`, otherwise turn the mode off for this graph (`GraphBuilder::numerics`)"
    )]
    NotDeterministic {
        /// The operation.
        op: &'static str,
    },

    /// A custom operation was called on a device for which it has no code.
    #[error("{op} has no code for {device}; {}", remedy_for(device))]
    NoCode {
        /// The operation.
        op: &'static str,
        /// The device: `the CPU`, or `a GPU`.
        device: &'static str,
    },

    /// The code of a custom operation returned an error or panicked. Its outputs hold anything.
    #[error("{op} failed: {reason}")]
    OperationFailed {
        /// The operation.
        op: &'static str,
        /// The cause, as the code states it.
        reason: String,
    },

    /// A pass of a user over a recording returned an error or panicked. Nothing was recorded.
    #[error(
        "the pass `{pass}` failed on {segment}: {reason}; correct it, or leave it out (`Passes::without`, `Runtime::set_passes`)"
    )]
    PassFailed {
        /// The name of the pass.
        pass: &'static str,
        /// The segment, or the whole call.
        segment: String,
        /// The cause, as the pass states it.
        reason: String,
    },

    /// The CUDA source of a custom operation does not compile.
    #[error("the CUDA source of {op} does not compile: {log}")]
    Compile {
        /// The operation.
        op: &'static str,
        /// The options and the log of the compiler.
        log: String,
    },

    /// A kernel found an index out of range.
    #[error(
        "{op}: index {index}{} is out of range; it must be below {bound}. What it names is read as zeros and is not written",
        text::signed(*index)
    )]
    IndexOutOfRange {
        /// The operation.
        op: &'static str,
        /// The first such index; a negative one of 32 or 64 bits as the unsigned number of its bits.
        index: u64,
        /// The number of rows, elements or classes that an index can name.
        bound: u64,
    },

    /// A loop on the device was ended by its limit.
    #[error(
        "the loop at {}:{} would go on after {limit} rounds, its limit, and was ended there: its values are those of \
         the last round; raise the limit, or correct its predicate",
        at.file(),
        at.line()
    )]
    LoopLimit {
        /// The position of the loop.
        at: &'static std::panic::Location<'static>,
        /// The largest number of rounds.
        limit: u32,
    },

    /// The bodies of a conditional node do not have results of the same kind.
    #[error("{control}: {what} is {first}, and {second}; make them equal")]
    BodiesDiffer {
        /// `cond`, `switch` or `while`.
        control: &'static str,
        /// The property that differs.
        what: String,
        /// The operation or value that one of the bodies has, and which body.
        first: String,
        /// The operation or value that the other one has, and which body.
        second: String,
    },

    /// Something that a body of a conditional node cannot do.
    #[error(
        "{call} inside a body of `control`: its code only describes the work, and runs whether or not the body does; \
         do it before the conditional, or after it, with a value that the bodies return"
    )]
    InsideBody {
        /// The method that was called.
        call: &'static str,
    },

    /// The device has no conditional nodes.
    #[error(
        "{device} has no conditional nodes: the driver supports CUDA {found}, and they need {needs}; update the driver, \
         or let such segments run without a graph (`eager_conditionals` of the builder)"
    )]
    NoConditionalNodes {
        /// The device.
        device: String,
        /// The first version that has them.
        needs: &'static str,
        /// The version of the driver.
        found: String,
    },

    /// There is not enough memory.
    #[error("out of memory on {device}: {bytes} bytes for {what}; free tensors or use smaller buckets")]
    OutOfMemory {
        /// The device.
        device: String,
        /// The requested number of bytes.
        bytes: u64,
        /// The purpose of the allocation.
        what: &'static str,
    },

    /// A device call failed. The call had no effect, and the runtime remains usable.
    #[error("{device}: {call} failed: {reason}")]
    Device {
        /// The device.
        device: String,
        /// The function that was called.
        call: &'static str,
        /// The device's message.
        reason: String,
    },

    /// The device is lost. Every further call of this runtime fails. On the CPU, a new runtime works; on a
    /// GPU, a process has only one context per GPU, so only a new process can use the GPU again.
    #[error(
        "{device} is lost: {reason}; its memory cannot be read any more, and it is usable again in a new process (on the \
         CPU: in a new runtime)"
    )]
    ContextLost {
        /// The device.
        device: String,
        /// The device's message.
        reason: String,
    },

    /// Other code launched work on the runtime's stream while a segment was recorded.
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
    #[error("{device} cannot be used: {reason}")]
    NoDevice {
        /// The requested device.
        device: String,
        /// The missing component and how to get it.
        reason: String,
    },
}
