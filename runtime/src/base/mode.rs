//! Capture modes, and the support of boundaries.

use std::fmt;

/// The part of a function that is captured as graphs.
///
/// `None`, `Piecewise` and `Full` treat all batches alike. The other two are pairs: one mode for batches that
/// are a uniform decode (every sequence has the same small number of new tokens), and one for all other
/// batches, which are called mixed:
///
/// | Mode | uniform decode | mixed | needs |
/// |---|---|---|---|
/// | `None` | each operation on its own | each operation on its own | |
/// | `Piecewise` | segments | segments | |
/// | `Full` | one graph | one graph | boundaries that support any batch |
/// | `FullDecodeOnly` | one graph | each operation on its own | boundaries that support such a decode |
/// | `FullAndPiecewise` | one graph | segments | the same, and a boundary |
///
/// A boundary declares its support, `#[eager(support = UniformBatch)]`; if that is less than a mode needs,
/// [`Capability::resolve`](crate::Capability::resolve) determines the result. The batch of a call comes from
/// [`Step::batch`](crate::Step::batch) or from its inputs ([`Batching`](crate::Batching)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is captured: every operation is launched individually.
    None,
    /// Segments are captured; boundaries run on each call.
    #[default]
    Piecewise,
    /// The whole call is one graph if every boundary supports it; otherwise its segments are, which is
    /// counted as a fallback.
    Full,
    /// Calls whose batch is a uniform decode are one graph; all others run without graphs.
    FullDecodeOnly,
    /// Calls whose batch is a uniform decode are one graph; in all others, the segments are graphs.
    FullAndPiecewise,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Piecewise, Self::Full, Self::FullDecodeOnly, Self::FullAndPiecewise];

    /// Returns the mode of batches that are a uniform decode: `None`, `Piecewise` or `Full`.
    pub fn decode(self) -> Self {
        match self {
            Self::FullDecodeOnly | Self::FullAndPiecewise => Self::Full,
            one => one,
        }
    }

    /// Returns the mode of all other batches: `None`, `Piecewise` or `Full`.
    pub fn mixed(self) -> Self {
        match self {
            Self::FullDecodeOnly => Self::None,
            Self::FullAndPiecewise => Self::Piecewise,
            one => one,
        }
    }

    /// Returns the mode of such a batch.
    pub(crate) fn part(self, uniform_decode: bool) -> Self {
        if uniform_decode { self.decode() } else { self.mixed() }
    }

    /// Returns whether the mode distinguishes batches.
    pub fn is_dual(self) -> bool {
        self.decode() != self.mixed()
    }

    /// Returns how much is captured by a mode that is not a pair.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Piecewise => 1,
            Self::Full | Self::FullDecodeOnly | Self::FullAndPiecewise => 2,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Piecewise => "piecewise",
            Self::Full => "full",
            Self::FullDecodeOnly => "full-decode-only",
            Self::FullAndPiecewise => "full-and-piecewise",
        })
    }
}

/// A subset of `None`, `Piecewise` and `Full`: the modes that a caller allows for one batch.
///
/// A mode that is a pair stands for both of its parts.
///
/// ```
/// use graphable::{Mode, ModeSet};
///
/// let no_whole_calls = ModeSet::ALL.without(Mode::Full);
/// assert!(no_whole_calls.contains(Mode::Piecewise) && !no_whole_calls.contains(Mode::Full));
/// assert_eq!(ModeSet::only(Mode::FullAndPiecewise), ModeSet::ALL.without(Mode::None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModeSet(u8);

impl ModeSet {
    /// All three.
    pub const ALL: Self = Self(0b111);

    fn of(mode: Mode) -> u8 {
        (1 << mode.decode().rank()) | (1 << mode.mixed().rank())
    }

    /// Contains only `mode`.
    pub fn only(mode: Mode) -> Self {
        Self(Self::of(mode))
    }

    /// Adds `mode`.
    #[must_use]
    pub fn with(self, mode: Mode) -> Self {
        Self(self.0 | Self::of(mode))
    }

    /// Removes `mode`.
    #[must_use]
    pub fn without(self, mode: Mode) -> Self {
        Self(self.0 & !Self::of(mode))
    }

    /// Returns whether `mode` is in the set; for a pair, whether both of its parts are.
    pub fn contains(self, mode: Mode) -> bool {
        self.0 & Self::of(mode) == Self::of(mode)
    }
}

impl Default for ModeSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for ModeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [Mode::Full, Mode::Piecewise, Mode::None].into_iter().filter(|m| self.contains(*m));
        let names: Vec<String> = names.map(|m| m.to_string()).collect();
        f.write_str(&if names.is_empty() { "no mode".to_owned() } else { names.join(", ") })
    }
}

impl fmt::Debug for ModeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModeSet({self})")
    }
}

/// The batches for which an `#[eager(support = …)]` boundary can be captured as part of the whole call;
/// weakest first.
///
/// With several boundaries, the weakest one counts. A call whose batch is not supported runs piecewise or
/// without a graph, depending on its [`Mode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Support {
    /// The boundary must run on each call.
    #[default]
    Never,
    /// Batches in which every sequence has exactly one new token.
    UniformSingleTokenDecode,
    /// Batches in which all sequences have the same number of new tokens.
    UniformBatch,
    /// Any batch.
    Always,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
