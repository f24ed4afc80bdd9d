//! The frequencies of pairs, scaled: one formula for all rules, so that a kernel needs no case of them.

use std::{f64::consts::TAU, hash::Hasher};

use super::scaling::{Divisors, LongRopeConfig, RopeScaling, YarnConfig};
use crate::{Error, Result};

/// Pair `i` turns by `position * frequency * ((1 - kept) * inverse + kept)`, where `frequency` is `base^(-2i/dim)` and
/// `kept`, the part that is not scaled, is `offset + per_pair * i + per_frequency * frequency`, within 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct Frequencies {
    /// The base, of dynamic scaling that of short sequences.
    pub(super) theta: f64,
    /// 1 / factor
    pub(super) inverse: f64,
    pub(super) offset: f64,
    pub(super) per_pair: f64,
    pub(super) per_frequency: f64,
    /// Factor of cosines and sines.
    pub(super) magnitude: f64,
    pub(super) dynamic: Option<Dynamic>,
    pub(super) long: Option<Long>,
}

/// Each pair has divisors of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    pub(super) divisors: &'static Divisors,
    /// The length up to which a sequence is short.
    pub(super) original: u32,
}

/// The base grows with the length of the sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dynamic {
    pub(super) factor: f64,
    /// The length up to which it does not.
    pub(super) original: u32,
    /// dim / (dim - 2)
    pub(super) exponent: f64,
}

fn positive(op: &'static str, what: &str, value: f32) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        return Ok(f64::from(value));
    }
    Err(Error::Argument { op, reason: format!("{what} is {value}; it must be a positive number") })
}

fn length(op: &'static str, original: u32) -> Result<f64> {
    if original > 0 {
        return Ok(f64::from(original));
    }
    let reason = "original_max_position_embeddings is 0; it must be at least 1".into();
    Err(Error::Argument { op, reason })
}

/// The exponent of NTK-aware scaling.
fn exponent(op: &'static str, dim: usize) -> Result<f64> {
    if dim > 2 {
        return Ok(dim as f64 / (dim - 2) as f64);
    }
    let reason = format!("{dim} elements rotate; NTK-aware scaling needs at least 4");
    Err(Error::Argument { op, reason })
}

impl Frequencies {
    /// Returns whether the frequencies depend on the positions.
    pub(in crate::ops) fn is_dynamic(&self) -> bool {
        self.dynamic.is_some() || self.long.is_some()
    }

    /// The frequencies of `dim` elements, scaled.
    pub(super) fn new(op: &'static str, theta: f32, dim: usize, scaling: &RopeScaling) -> Result<Self> {
        let plain = Self {
            theta: f64::from(theta),
            inverse: 1.0,
            offset: 0.0,
            per_pair: 0.0,
            per_frequency: 0.0,
            magnitude: 1.0,
            dynamic: None,
            long: None,
        };
        Ok(match *scaling {
            RopeScaling::None => plain,
            RopeScaling::Linear { factor } => {
                Self { inverse: positive(op, "factor", factor)?.recip(), ..plain }
            }
            RopeScaling::Ntk { factor } => {
                let factor = positive(op, "factor", factor)?;
                Self { theta: plain.theta * factor.powf(exponent(op, dim)?), ..plain }
            }
            RopeScaling::DynamicNtk { factor, original_max_position_embeddings: original } => {
                length(op, original)?;
                let (factor, exponent) = (positive(op, "factor", factor)?, exponent(op, dim)?);
                Self { dynamic: Some(Dynamic { factor, original, exponent }), ..plain }
            }
            RopeScaling::Yarn(yarn) => plain.yarn(op, dim, &yarn)?,
            RopeScaling::LongRope(config) => plain.long_rope(op, dim, &config)?,
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            } => {
                let (low, high) = (
                    positive(op, "low_freq_factor", low_freq_factor)?,
                    positive(op, "high_freq_factor", high_freq_factor)?,
                );
                if low >= high {
                    let reason =
                        format!("low_freq_factor is {low}; it must be less than high_freq_factor ({high})");
                    return Err(Error::Argument { op, reason });
                }
                Self {
                    inverse: positive(op, "factor", factor)?.recip(),
                    per_frequency: length(op, original_max_position_embeddings)? / (TAU * (high - low)),
                    offset: -low / (high - low),
                    ..plain
                }
            }
        })
    }

    fn yarn(self, op: &'static str, dim: usize, yarn: &YarnConfig) -> Result<Self> {
        let (factor, original) = (positive(op, "factor", yarn.factor)?, length(op, yarn.original)?);
        let (fast, slow) = (positive(op, "beta_fast", yarn.beta.0)?, positive(op, "beta_slow", yarn.beta.1)?);
        if slow > fast {
            let reason = format!("beta_slow is {slow}; it must be at most beta_fast ({fast})");
            return Err(Error::Argument { op, reason });
        }
        if self.theta <= 1.0 {
            let reason = format!("theta is {}; YaRN needs more than 1", self.theta);
            return Err(Error::Argument { op, reason });
        }
        // The pair that turns so many times in the original length.
        let pair = |turns: f64| dim as f64 * (original / (turns * TAU)).ln() / (2.0 * self.theta.ln());
        let (mut low, mut high) = (pair(fast), pair(slow));
        if yarn.truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        (low, high) = (low.max(0.0), high.min(dim as f64 - 1.0));
        // As `transformers` avoids the division by zero.
        let width = if low == high { 0.001 } else { high - low };
        let grown = |by: f64| if factor > 1.0 { 0.1 * by * factor.ln() + 1.0 } else { 1.0 };
        let magnitude = match (yarn.attention_factor, yarn.mscale) {
            (Some(given), _) => positive(op, "attention_factor", given)?,
            (None, Some((one, all))) => {
                grown(positive(op, "mscale", one)?) / grown(positive(op, "mscale_all_dim", all)?)
            }
            (None, None) => grown(1.0),
        };
        Ok(Self {
            inverse: factor.recip(),
            per_pair: -1.0 / width,
            offset: 1.0 + low / width,
            magnitude,
            ..self
        })
    }

    fn long_rope(self, op: &'static str, dim: usize, config: &LongRopeConfig) -> Result<Self> {
        let LongRopeConfig { divisors, original, most, attention_factor } = *config;
        for (what, all) in [("short", &divisors.short), ("long", &divisors.long)] {
            if all.len() != dim / 2 {
                let reason = format!("there are {} {what} divisors for {} pairs", all.len(), dim / 2);
                return Err(Error::Argument { op, reason });
            }
            if let Some(wrong) = all.iter().find(|one| !one.is_finite() || **one <= 0.0) {
                positive(op, &format!("one of the {what} divisors"), *wrong)?;
            }
        }
        let (length, grown) = (length(op, original)?, f64::from(most) / f64::from(original));
        let magnitude = match attention_factor {
            Some(given) => positive(op, "attention_factor", given)?,
            None if grown <= 1.0 => 1.0,
            None if original > 1 => (1.0 + grown.ln() / length.ln()).sqrt(),
            None => {
                let reason =
                    "original_max_position_embeddings is 1; it must be more, or `attention_factor` be given"
                        .into();
                return Err(Error::Argument { op, reason });
            }
        };
        Ok(Self { magnitude, long: Some(Long { divisors, original }), ..self })
    }

    /// Returns the divisors of the pairs in sequences of `length` positions, if each pair has its own.
    pub(super) fn divisors(&self, length: u64) -> Option<&'static [f32]> {
        let Long { divisors, original } = self.long?;
        Some(if length > u64::from(original) { &divisors.long } else { &divisors.short })
    }

    /// Returns the base for sequences of `length` positions.
    pub(super) fn base(&self, length: u64) -> f64 {
        match self.dynamic {
            Some(Dynamic { factor, original, exponent }) if length > u64::from(original) => {
                let grown = factor * length as f64 / f64::from(original) - (factor - 1.0);
                self.theta * grown.powf(exponent)
            }
            _ => self.theta,
        }
    }

    /// Returns radians per position of pair `i` of `dim / 2`.
    pub(super) fn of(&self, base: f64, dim: usize, i: usize) -> f64 {
        let frequency = base.powf(-2.0 * i as f64 / dim as f64);
        let kept = (self.offset + self.per_pair * i as f64 + self.per_frequency * frequency).clamp(0.0, 1.0);
        frequency * ((1.0 - kept) * self.inverse + kept)
    }

    /// Writes all numbers, which distinguish operations.
    pub(super) fn write(&self, to: &mut dyn Hasher) {
        let Self { theta, inverse, offset, per_pair, per_frequency, magnitude, dynamic, long } = *self;
        for number in [theta, inverse, offset, per_pair, per_frequency, magnitude] {
            to.write_u64(number.to_bits());
        }
        to.write_u8(dynamic.is_some().into());
        if let Some(Dynamic { factor, original, exponent }) = dynamic {
            to.write_u64(factor.to_bits());
            to.write_u32(original);
            to.write_u64(exponent.to_bits());
        }
        to.write_u8(long.is_some().into());
        if let Some(Long { divisors, original }) = long {
            to.write_u32(original);
            to.write_usize(divisors.short.len());
            divisors.short.iter().chain(&divisors.long).for_each(|one| to.write_u32(one.to_bits()));
        }
    }
}
