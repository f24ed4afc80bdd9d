//! The scaling of rotary frequencies for long sequences.

use std::sync::{Mutex, PoisonError};

/// A rule that lowers the frequencies of [`rope`](super::rope), so that positions beyond those of the training turn
/// no further than what the model has seen. The names are those of Hugging Face's `rope_scaling`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// None: pair `i` turns by `position * theta^(-2i/dim)`.
    #[default]
    None,
    /// All frequencies are divided by `factor` (position interpolation, Chen et al. 2023).
    Linear {
        /// The factor by which sequences are longer than in training.
        factor: f32,
    },
    /// The base is `theta * factor^(dim/(dim-2))`: the highest frequency is unchanged, the lowest one is divided by
    /// `factor` (NTK-aware scaling).
    Ntk {
        /// The factor by which sequences are longer than in training.
        factor: f32,
    },
    /// NTK-aware scaling by the length of the sequence, which is one more than the largest position of the call: up to
    /// `original_max_position_embeddings` nothing is scaled, beyond it by `factor * length / original - (factor - 1)`.
    /// Positions of padding, and of rows that [`rope_scatter`](super::rope_scatter) skips, do not count. Keys that were rotated in earlier calls keep their angles, as in
    /// `transformers`.
    DynamicNtk {
        /// The rate at which the base grows with the length.
        factor: f32,
        /// The length of sequences in the training.
        original_max_position_embeddings: u32,
    },
    /// YaRN (Peng et al. 2023): high frequencies are unchanged, low ones divided by a factor, those between mixed.
    Yarn(YarnConfig),
    /// The rule of Llama 3.1: wavelengths longer than `original / low_freq_factor` are divided by `factor`, those
    /// shorter than `original / high_freq_factor` are unchanged, those between mixed.
    Llama3 {
        /// The divisor of low frequencies.
        factor: f32,
        /// Turns in the original length below which a frequency is low.
        low_freq_factor: f32,
        /// Turns in the original length above which a frequency is high.
        high_freq_factor: f32,
        /// The length of sequences in the training.
        original_max_position_embeddings: u32,
    },
    /// LongRoPE (Ding et al. 2024), as Phi-3 has it: each pair has divisors of its own, one for short sequences and one for
    /// long ones.
    LongRope(LongRopeConfig),
}

/// Parameters of [`RopeScaling::LongRope`].
///
/// ```
/// use graphable::ops::{LongRopeConfig, RopeConfig, RopeScaling, RopeStyle};
///
/// // Heads of 8 elements, trained for 4096 positions and then for 131072.
/// let (short, long) = ([1.0, 1.02, 1.1, 1.3], [1.08, 2.5, 16.0, 64.0]);
/// let config = LongRopeConfig::new(&short, &long, 4096, 131_072);
/// let rope = RopeConfig::new(10_000.0, RopeStyle::HalfSplit).scaling(RopeScaling::LongRope(config));
/// # let _ = rope;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongRopeConfig {
    pub(crate) divisors: &'static Divisors,
    pub(crate) original: u32,
    pub(crate) most: u32,
    pub(crate) attention_factor: Option<f32>,
}

/// The divisors of the frequencies of pairs.
#[derive(Debug, PartialEq)]
pub(crate) struct Divisors {
    pub(crate) short: Box<[f32]>,
    pub(crate) long: Box<[f32]>,
}

impl Divisors {
    /// The process keeps them, equal ones once, so that parameters of operations can be copied.
    fn kept(short: &[f32], long: &[f32]) -> &'static Self {
        static ALL: Mutex<Vec<&'static Divisors>> = Mutex::new(Vec::new());
        let bits = |all: &[f32]| all.iter().map(|one| one.to_bits()).collect::<Vec<_>>();
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&&Self| bits(&known.short) == bits(short) && bits(&known.long) == bits(long);
        if let Some(known) = all.iter().find(is_same) {
            return known;
        }
        let new = Box::leak(Box::new(Self { short: short.into(), long: long.into() }));
        all.push(new);
        new
    }
}

impl LongRopeConfig {
    /// Divides the frequency of pair `i` by `short[i]` while the sequence, which is one more than the largest position of
    /// the call, has at most `original_max_position_embeddings` positions, and by `long[i]` beyond (`short_factor`,
    /// `long_factor`). Positions of padding, and of rows that [`rope_scatter`](super::rope_scatter) skips, do not count. Keys
    /// that were rotated in earlier calls keep their angles, as in `transformers`.
    ///
    /// Cosines and sines are multiplied by `sqrt(1 + ln(s) / ln(original_max_position_embeddings))`, where `s` is
    /// `max_position_embeddings / original_max_position_embeddings`, if that is more than 1.
    ///
    /// The divisors are kept as long as the process; equal ones are kept once.
    #[must_use]
    pub fn new(
        short: &[f32],
        long: &[f32],
        original_max_position_embeddings: u32,
        max_position_embeddings: u32,
    ) -> Self {
        Self {
            divisors: Divisors::kept(short, long),
            original: original_max_position_embeddings,
            most: max_position_embeddings,
            attention_factor: None,
        }
    }

    /// Sets the number by which cosines and sines are multiplied.
    #[must_use]
    pub const fn attention_factor(self, factor: f32) -> Self {
        Self { attention_factor: Some(factor), ..self }
    }
}

/// Parameters of [`RopeScaling::Yarn`].
///
/// ```
/// use graphable::ops::{RopeConfig, RopeScaling, RopeStyle, YarnConfig};
///
/// // As gpt-oss has it.
/// let yarn = YarnConfig::new(32.0, 4096).truncate(false);
/// let rope = RopeConfig::new(150_000.0, RopeStyle::HalfSplit).scaling(RopeScaling::Yarn(yarn));
/// # let _ = rope;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct YarnConfig {
    pub(crate) factor: f32,
    pub(crate) original: u32,
    pub(crate) beta: (f32, f32),
    pub(crate) truncate: bool,
    pub(crate) attention_factor: Option<f32>,
    pub(crate) mscale: Option<(f32, f32)>,
}

impl YarnConfig {
    /// Creates a configuration for sequences `factor` times as long as `original_max_position_embeddings`. The betas are 32
    /// and 1. Cosines and sines are multiplied by `0.1 * ln(factor) + 1`, or by 1 if the factor is at most 1.
    #[must_use]
    pub const fn new(factor: f32, original_max_position_embeddings: u32) -> Self {
        Self {
            factor,
            original: original_max_position_embeddings,
            beta: (32.0, 1.0),
            truncate: true,
            attention_factor: None,
            mscale: None,
        }
    }

    /// Sets the limits of mixing (`beta_fast`, `beta_slow`). Frequencies that turn more than `fast` times in the original length
    /// stay unchanged. Those that turn less than `slow` times are divided by the factor. Those between are mixed.
    #[must_use]
    pub const fn beta(self, fast: f32, slow: f32) -> Self {
        Self { beta: (fast, slow), ..self }
    }

    /// Sets whether the pairs where mixing begins and ends are rounded to whole ones, outwards (the default).
    #[must_use]
    pub const fn truncate(self, truncate: bool) -> Self {
        Self { truncate, ..self }
    }

    /// Sets the number by which cosines and sines are multiplied.
    #[must_use]
    pub const fn attention_factor(self, factor: f32) -> Self {
        Self { attention_factor: Some(factor), ..self }
    }

    /// Multiplies cosines and sines by `m(mscale) / m(mscale_all_dim)`, where `m(x)` is `0.1 * x * ln(factor) + 1`
    /// (DeepSeek).
    #[must_use]
    pub const fn mscale(self, mscale: f32, mscale_all_dim: f32) -> Self {
        Self { mscale: Some((mscale, mscale_all_dim)), ..self }
    }
}
