//! Parameters of rotary embedding.

use super::{
    frequencies::Frequencies,
    operation::{Rope, RopeStyle},
    scaling::{LongRopeConfig, RopeScaling},
};
use crate::{Error, Result};

/// Parameters of [`rope`](super::rope).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies: pair `i` turns by `position * theta^(-2i/dim)` radians.
    pub theta: f32,
    /// The elements of a head that form a pair.
    pub style: RopeStyle,
    /// The number of elements of a head that rotate, from the first on; `None` for all of them.
    pub dim: Option<usize>,
}

impl RopeConfig {
    /// Rotates whole heads.
    pub const fn new(theta: f32, style: RopeStyle) -> Self {
        Self { theta, style, dim: None }
    }

    /// Rotates the first `dim` elements of a head and copies the others (partial rotary embedding). The frequencies are
    /// those of a head of `dim` elements.
    #[must_use]
    pub const fn partial(self, dim: usize) -> Self {
        Self { dim: Some(dim), ..self }
    }

    /// Scales the frequencies, for sequences that are longer than those of the training.
    #[must_use]
    pub const fn scaling(self, scaling: RopeScaling) -> RopeOptions {
        RopeOptions { config: self, scaling, sections: Sections::ONE }
    }

    /// Divides the pairs into sections with a position each; see [`RopeOptions::sections`].
    #[must_use]
    pub fn sections<const N: usize>(self, pairs: [usize; N]) -> RopeOptions {
        self.scaling(RopeScaling::None).sections(pairs)
    }

    /// Deals the pairs to sections with a position each; see [`RopeOptions::interleaved_sections`].
    #[must_use]
    pub fn interleaved_sections<const N: usize>(self, pairs: [usize; N]) -> RopeOptions {
        self.scaling(RopeScaling::None).interleaved_sections(pairs)
    }
}

/// A [`RopeConfig`] with scaled frequencies, or with several positions for each row.
///
/// ```
/// use graphable::ops::{RopeConfig, RopeScaling, RopeStyle};
///
/// // Llama 3.1, and Qwen2-VL with positions of time, height and width.
/// let llama = RopeConfig::new(500_000.0, RopeStyle::HalfSplit).scaling(RopeScaling::Llama3 {
///     factor: 8.0,
///     low_freq_factor: 1.0,
///     high_freq_factor: 4.0,
///     original_max_position_embeddings: 8192,
/// });
/// let qwen = RopeConfig::new(1e6, RopeStyle::HalfSplit).sections([16, 24, 24]);
/// assert_ne!(llama, qwen);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeOptions {
    pub(crate) config: RopeConfig,
    pub(crate) scaling: RopeScaling,
    pub(crate) sections: Sections,
}

impl From<RopeConfig> for RopeOptions {
    fn from(config: RopeConfig) -> Self {
        config.scaling(RopeScaling::None)
    }
}

impl RopeOptions {
    /// Scales the frequencies, for sequences that are longer than those of the training.
    #[must_use]
    pub const fn scaling(self, scaling: RopeScaling) -> Self {
        Self { scaling, ..self }
    }

    /// Divides the pairs into `N` sections of so many pairs, one after the other, with a position each: the multi-section
    /// embedding of Qwen2-VL (`mrope_section`), with positions of time, height and width. Positions then have a first
    /// dimension of size `N`. There can be up to four sections; together they must have all pairs. A section may have none: its
    /// positions count for the length of the sequence alone, where [the frequencies follow from it](Self::depends_on_length).
    #[must_use]
    pub fn sections<const N: usize>(self, pairs: [usize; N]) -> Self {
        Self { sections: Sections::new(pairs, false), ..self }
    }

    /// Divides pairs into sections that alternate, unlike [`sections`](Self::sections): pair `i` belongs to
    /// section `i % N` until that section is full, and to section 0 after that. This is the layout of Qwen3-VL
    /// (`mrope_interleaved`).
    #[must_use]
    pub fn interleaved_sections<const N: usize>(self, pairs: [usize; N]) -> Self {
        Self { sections: Sections::new(pairs, true), ..self }
    }

    /// Returns whether the frequencies follow from the length of the sequence, which is one more than the largest position of a
    /// call ([`RopeScaling::DynamicNtk`], and [`RopeScaling::LongRope`] with two lists of divisors). A call that has a part of a sequence is told where the
    /// sequence ends by the positions of a [section](Self::sections) without pairs:
    ///
    /// ```
    /// # use graphable::{ops::{RopeScaling, RopeStyle}, prelude::*};
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let scaling = RopeScaling::DynamicNtk { factor: 4.0, original_max_position_embeddings: 2 };
    /// let config = ops::RopeConfig::new(10_000.0, RopeStyle::HalfSplit).scaling(scaling);
    /// assert!(config.depends_on_length());
    ///
    /// // A sequence of three at once, and its first two rows as a part of three.
    /// let x = step.tensor(&[3, 1, 4], &[1.0f32; 12])?;
    /// let positions = step.tensor(&[3], &[0u32, 1, 2])?;
    /// let whole = step.read(&ops::rope(&x, &positions, config)?)?;
    /// let x = step.tensor(&[2, 1, 4], &[1.0f32; 8])?;
    /// let positions = step.tensor(&[2, 2], &[0u32, 1, 2, 2])?;
    /// let part = step.read(&ops::rope(&x, &positions, config.sections([config.pairs(4), 0]))?)?;
    /// assert_eq!(part, whole[..8]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn depends_on_length(&self) -> bool {
        match self.scaling {
            RopeScaling::DynamicNtk { .. } => true,
            // Those of Llama 3.1 in GGUF files are the same at every length.
            RopeScaling::LongRope(LongRopeConfig { divisors, .. }) => divisors.short != divisors.long,
            _ => false,
        }
    }

    /// Returns the number of pairs that turn in heads of `d` elements.
    pub const fn pairs(&self, d: usize) -> usize {
        match self.config.dim {
            Some(dim) => dim / 2,
            None => d / 2,
        }
    }

    /// Returns the operation for heads of `d` elements.
    pub(super) fn operation(&self, op: &'static str, d: usize) -> Result<Rope> {
        let RopeConfig { theta, style, dim } = self.config;
        let dim = dim.unwrap_or(d);
        if !dim.is_multiple_of(2) || dim > d {
            let reason =
                format!("{dim} elements of a head of {d} cannot rotate; an even number up to {d} can");
            return Err(Error::Argument { op, reason });
        }
        if !(theta.is_finite() && theta > 0.0) {
            let reason = format!("theta is {theta}; it must be a positive number");
            return Err(Error::Argument { op, reason });
        }
        self.sections.check(op, dim / 2)?;
        let frequencies = Frequencies::new(op, theta, dim, &self.scaling)?;
        Ok(Rope { style, dim, frequencies, sections: self.sections, padded: [false; 2] })
    }
}

/// Most sections.
const MOST: usize = 4;

/// The position that turns a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sections {
    /// Pairs of each section.
    pub(crate) pairs: [usize; MOST],
    /// Number of sections; 0 if positions have no dimension for them.
    pub(crate) count: usize,
    /// If set, the sections alternate.
    pub(crate) take_turns: bool,
}

impl Sections {
    /// One position for all pairs.
    pub(crate) const ONE: Self = Self { pairs: [0; MOST], count: 0, take_turns: false };

    fn new<const N: usize>(pairs: [usize; N], take_turns: bool) -> Self {
        const { assert!(N >= 1 && N <= MOST, "rotary embedding has 1 to 4 sections") }
        let mut all = [0; MOST];
        all[..N].copy_from_slice(&pairs);
        Self { pairs: all, count: N, take_turns }
    }

    fn check(&self, op: &'static str, half: usize) -> Result<()> {
        let given = &self.pairs[..self.count];
        let sum = given.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
        if self.count > 0 && sum != Some(half) {
            let reason =
                format!("sections of {given:?} pairs; together they must have the {half} pairs that rotate");
            return Err(Error::Argument { op, reason });
        }
        Ok(())
    }

    /// Returns the section of pair `i`.
    pub(super) fn of(&self, i: usize) -> usize {
        if self.count == 0 {
            return 0;
        }
        if self.take_turns {
            let turn = i % self.count;
            return if i / self.count < self.pairs[turn] { turn } else { 0 };
        }
        let mut end = 0;
        self.pairs[..self.count]
            .iter()
            .position(|&n| {
                end += n;
                i < end
            })
            .unwrap_or(0)
    }
}
