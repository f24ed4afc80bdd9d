//! Operations as data: what a front end asks of a backend.
//!
//! A [`Launch`] names an [`Op`] and the memory it reads and writes. The backend may trust it:
//! shapes, dtypes and aliasing were checked by `ops`, addresses by the recorder.

use smallvec::SmallVec;

use crate::{base::rank::MAX_RANK, value::view::View};

/// Element-wise functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unary {
    /// `-x`
    Neg,
    /// `e^x`
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// `1/sqrt(x)`
    Rsqrt,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`
    Relu,
    /// `x * Phi(x)`, with the error function.
    Gelu,
    /// GELU by the tanh approximation.
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `x * factor`
    Scale(f32),
}

/// Element-wise functions of two arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`; integer division by zero gives 0.
    Div,
    /// `silu(a) * b`
    SiluMul,
}

/// Comparisons; the output is `bool`. Any comparison with NaN is false, but `Ne`, which is true.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Compare {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
}

/// Reductions over one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reduce {
    /// Sum.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Maximum; NaN if any element is NaN.
    Max,
}

/// How rotary embedding pairs the elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RopeStyle {
    /// Pairs `(0,1), (2,3), …` (GGUF Llama, GPT-J).
    Interleaved,
    /// Pairs `(i, i + d/2)` (Hugging Face Llama, GPT-NeoX).
    HalfSplit,
}

/// Which keys a query may see. `i` is a query, `j` a key, `T` and `S` their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaskKind {
    /// All of them.
    None,
    /// `j <= i + (S - T)`
    Causal,
    /// `j < lengths[b]`; the fourth input holds `lengths`, u32 `[B]`.
    Lengths,
    /// `j <= positions[b, i]`; the fourth input holds `positions`, u32 `[B, T]`.
    Positions,
}

/// Which further inputs an operation has that picks by index: u32 scalars with the real sizes of padded dimensions,
/// listed by place.
///
/// Places `0..6` are the dimensions of the index: an index that stands in their padding is no fault. Place
/// [`ROWS`](Self::ROWS) is what is picked from: an index of its padding is out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(u8);

impl Counts {
    /// None.
    pub const NONE: Self = Self(0);
    /// The place of the rows that are picked from.
    pub const ROWS: usize = MAX_RANK;

    /// `self` and a count for `place`.
    #[must_use]
    pub fn with(self, place: usize) -> Self {
        debug_assert!(place <= Self::ROWS);
        Self(self.0 | 1 << place)
    }

    /// The places that have a count, ascending: as the inputs are listed.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..=Self::ROWS).filter(move |place| self.0 & 1 << place != 0)
    }
}

/// What to compute. Inputs and outputs are listed in the order of the [`Launch`].
///
/// Unless said otherwise the output is contiguous, inputs may have any strides (0 included), and
/// element-wise inputs already have the output's shape.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Op {
    /// `[x] -> [y]`, same dtype.
    Unary(Unary),
    /// `[a, b] -> [y]`, same dtype.
    Binary(Binary),
    /// `[a, b] -> [y: bool]`
    Compare(Compare),
    /// `[cond: bool, a, b] -> [y]`
    Where,
    /// `[x] -> [y]`: converts between dtypes (floats to integers truncate and saturate, NaN is 0).
    Cast,
    /// `[x] -> [y]`, same dtype; the output may be strided too.
    Copy,
    /// `[x] -> [y]`: `y` is at least as large as `x` in every dimension; the rest is zeroed.
    Pad,
    /// `[] -> [y]`: every element is the value.
    Fill(f64),
    /// `[] -> [y]`: `y[i] = start + i * step`, computed in f64, then rounded.
    Arange {
        /// First value.
        start: f64,
        /// Difference of neighbours.
        step: f64,
    },
    /// `[a: .., M, K; b: .., K, N] -> [y: .., M, N]`, accumulated in f32 (integers: wrapping).
    /// Batch dimensions are already broadcast (stride 0). An optional third input `[N]`, broadcast to
    /// the output's shape, is added.
    MatMul,
    /// `[ids: u32 .., table: V, D, (counts)] -> [y: .., D]`. Rows out of range fault and read as zeros.
    Embedding {
        /// Which sizes are counted on the device.
        counts: Counts,
    },
    /// `[x, index: u32 N, (counts)] -> [y]`: picks slices along `axis`. Out of range faults, reads as zeros.
    Gather {
        /// The axis of `x` that `index` counts.
        axis: usize,
        /// Which sizes are counted on the device.
        counts: Counts,
    },
    /// `[index: u32 N, src: N, row.., (count: u32 scalar)] -> [state: R, row..]`, in place.
    /// Row `i` of `src` goes to row `index[i]`; `u32::MAX` is skipped; so are rows `i >= count`.
    /// Out of range faults and is skipped. Rows given twice: the last wins.
    ScatterRows,
    /// `[x: .., D, weight: D, (bias: D)] -> [y]` over the last axis, statistics in f32.
    LayerNorm {
        /// Added to the variance.
        eps: f32,
    },
    /// `[x: .., D, weight: D] -> [y]` over the last axis, statistics in f32.
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// `[x: .., D, added: .., D, weight: D] -> [sum: .., D, y: .., D]`: `sum = x + added`, rounded to the
    /// dtype, then as [`RmsNorm`](Self::RmsNorm) of the sum.
    AddRmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// `[x] -> [y]`: `x / max(norm(x), eps)` over `axis`.
    L2Normalize {
        /// Normalised axis.
        axis: usize,
        /// Smallest divisor.
        eps: f32,
    },
    /// `[x] -> [y]` over `axis`, in f32. A slice of only `-inf` gives zeros (`log`: `-inf`).
    Softmax {
        /// Normalised axis.
        axis: usize,
        /// Gives the logarithm.
        log: bool,
    },
    /// `[x] -> [y]`: `axis` is removed. Floats accumulate in f32, integers wrap (mean: f64, truncated).
    Reduce {
        /// What to compute.
        kind: Reduce,
        /// Removed axis.
        axis: usize,
    },
    /// `[x] -> [y: u32]`: index of the first maximum along `axis`, which is removed. NaN counts as
    /// larger than every number.
    ArgMax {
        /// Removed axis.
        axis: usize,
    },
    /// `[x: .., mask: bool broadcast to x, (count: u32 scalar)] -> [y]`: `sum(x*m)/max(sum(m), 1e-9)`; `axis` is
    /// removed. Elements from `count` on are not read.
    MaskedMean {
        /// Removed axis.
        axis: usize,
    },
    /// As [`MaskedMean`](Self::MaskedMean): `sum(x*m)`.
    MaskedSum {
        /// Removed axis.
        axis: usize,
    },
    /// `[x: B, T, H, D, positions: u32 B, T] -> [y]`. The first `dim` elements of a head rotate by
    /// `position * theta^(-2i/dim)`; the rest is copied.
    Rope {
        /// Base of the frequencies.
        theta: f32,
        /// Pairing.
        style: RopeStyle,
        /// Rotated elements of a head, even.
        dim: usize,
    },
    /// `[x: 1, N, H, D, positions: u32 1, N, index: u32 N, (count: u32 scalar)] -> [state: R, H, D]`, in
    /// place: as [`Rope`](Self::Rope), each row going where [`ScatterRows`](Self::ScatterRows) puts it.
    RopeScatter {
        /// Base of the frequencies.
        theta: f32,
        /// Pairing.
        style: RopeStyle,
        /// Rotated elements of a head, even.
        dim: usize,
    },
    /// `[q: B, T, Hq, D; k: B, S, Hkv, D; v: B, S, Hkv, Dv; (mask input, (count: u32 scalar))] -> [y: B, T, Hq, Dv]`.
    /// No query sees a key from `count` on.
    /// Scores are `scale * q.k`, softmax in f32. Query head `h` uses key head `h / (Hq / Hkv)`.
    /// A query that sees no key gives zeros.
    Attention {
        /// Who sees whom.
        mask: MaskKind,
        /// Factor of the scores.
        scale: f32,
    },
    /// `[x0, x1, ..] -> [y]` along `axis`.
    Concat {
        /// Joined axis.
        axis: usize,
    },
}

impl Op {
    /// Whether it writes memory that is not only its own output's: state, of which a copy may have to be kept.
    pub(crate) fn writes_in_place(&self) -> bool {
        matches!(self, Self::ScatterRows | Self::RopeScatter { .. } | Self::Copy)
    }

    /// A short name for messages, events and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unary(u) => match u {
                Unary::Neg => "neg",
                Unary::Exp => "exp",
                Unary::Log => "log",
                Unary::Sqrt => "sqrt",
                Unary::Rsqrt => "rsqrt",
                Unary::Tanh => "tanh",
                Unary::Relu => "relu",
                Unary::Gelu => "gelu",
                Unary::GeluTanh => "gelu_tanh",
                Unary::Silu => "silu",
                Unary::Scale(_) => "scale",
            },
            Self::Binary(b) => match b {
                Binary::Add => "add",
                Binary::Sub => "sub",
                Binary::Mul => "mul",
                Binary::Div => "div",
                Binary::SiluMul => "silu_mul",
            },
            Self::Compare(_) => "compare",
            Self::Where => "where",
            Self::Cast => "cast",
            Self::Copy => "copy",
            Self::Pad => "pad",
            Self::Fill(_) => "fill",
            Self::Arange { .. } => "arange",
            Self::MatMul => "matmul",
            Self::Embedding { .. } => "embedding",
            Self::Gather { .. } => "gather",
            Self::ScatterRows => "scatter_rows",
            Self::LayerNorm { .. } => "layer_norm",
            Self::RmsNorm { .. } => "rms_norm",
            Self::AddRmsNorm { .. } => "add_rms_norm",
            Self::L2Normalize { .. } => "l2_normalize",
            Self::Softmax { log: false, .. } => "softmax",
            Self::Softmax { log: true, .. } => "log_softmax",
            Self::Reduce { kind: Reduce::Sum, .. } => "sum",
            Self::Reduce { kind: Reduce::Mean, .. } => "mean",
            Self::Reduce { kind: Reduce::Max, .. } => "max",
            Self::ArgMax { .. } => "argmax",
            Self::MaskedMean { .. } => "masked_mean",
            Self::MaskedSum { .. } => "masked_sum",
            Self::Rope { .. } => "rope",
            Self::RopeScatter { .. } => "rope_scatter",
            Self::Attention { .. } => "attention",
            Self::Concat { .. } => "concat",
        }
    }
}

/// One operation with its memory.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to compute.
    pub op: Op,
    /// What is read.
    pub inputs: SmallVec<[View; 4]>,
    /// What is written.
    pub outputs: SmallVec<[View; 1]>,
    /// Address of the bytes that [`Stream::workspace`](super::Stream::workspace) asked for, if any;
    /// aligned to 256 bytes, contents unknown, free again when the operation is done.
    pub workspace: u64,
}

impl Launch {
    /// Of nothing.
    pub(crate) fn empty() -> Self {
        Self { op: Op::Copy, inputs: SmallVec::new(), outputs: SmallVec::new(), workspace: 0 }
    }
}
