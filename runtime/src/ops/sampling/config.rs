//! The parameters of sampling.

use super::{
    filters::{check_part, check_presence_penalty, check_repetition_penalty, check_temperature},
    per_row::PerRow,
};
use crate::{AsOperand, Result};

/// The choice of tokens from logits: parameters of [`sample`](crate::ops::sample), in the order in which they apply.
///
/// Each is a number, or [one value for each row](PerRow), so that a batch may mix them in one graph. A number that changes
/// nothing costs nothing; a value on the device is always applied. A number is a constant of the recording.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// // The first row is greedy, the second one is sampled from its two best tokens.
/// let temperatures = step.tensor(&[2], &[0.0f32, 0.7])?;
/// let config = ops::SampleConfig::new().temperature(&temperatures).top_k(2);
/// let logits = step.tensor(&[2, 3], &[1.0f32, 3.0, 2.0, 1.0, 3.0, 2.0])?;
/// let uniforms = step.tensor(&[2], &[0.9f32, 0.9])?;
/// assert_eq!(step.read(&ops::sample_with(&logits, config, &uniforms)?)?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SampleConfig<'a, 's> {
    pub(super) repetition: Option<Penalty<'a, 's>>,
    pub(super) presence: Option<Penalty<'a, 's>>,
    pub(super) temperature: PerRow<'a, 's, f32>,
    pub(super) top_k: PerRow<'a, 's, u32>,
    pub(super) top_p: PerRow<'a, 's, f32>,
    pub(super) min_p: PerRow<'a, 's, f32>,
}

/// A penalty of tokens that were seen.
#[derive(Clone, Copy)]
pub(super) struct Penalty<'a, 's> {
    pub(super) seen: &'a dyn AsOperand<'s, bool>,
    pub(super) value: PerRow<'a, 's, f32>,
}

impl<'a, 's> SampleConfig<'a, 's> {
    /// Samples from the probabilities that the logits have: temperature 1, no penalty, all tokens.
    #[must_use]
    pub fn new() -> Self {
        Self {
            repetition: None,
            presence: None,
            temperature: PerRow::from(1.0),
            top_k: PerRow::from(0),
            top_p: PerRow::from(1.0),
            min_p: PerRow::from(0.0),
        }
    }

    /// Sets the repetition penalty, which applies first: see [`apply_repetition_penalty`](crate::ops::apply_repetition_penalty).
    #[must_use]
    pub fn repetition_penalty(
        self,
        seen: &'a impl AsOperand<'s, bool>,
        penalty: impl Into<PerRow<'a, 's, f32>>,
    ) -> Self {
        Self { repetition: Some(Penalty { seen, value: penalty.into() }), ..self }
    }

    /// Sets the presence penalty, which applies second: see [`apply_presence_penalty`](crate::ops::apply_presence_penalty).
    #[must_use]
    pub fn presence_penalty(
        self,
        seen: &'a impl AsOperand<'s, bool>,
        penalty: impl Into<PerRow<'a, 's, f32>>,
    ) -> Self {
        Self { presence: Some(Penalty { seen, value: penalty.into() }), ..self }
    }

    /// Sets the temperature, which applies third: see [`apply_temperature`](crate::ops::apply_temperature). At 0, the first
    /// of the most likely tokens is always chosen.
    #[must_use]
    pub fn temperature(self, temperature: impl Into<PerRow<'a, 's, f32>>) -> Self {
        Self { temperature: temperature.into(), ..self }
    }

    /// Sets the number of the most likely tokens that are kept, fourth: see [`apply_top_k`](crate::ops::apply_top_k).
    #[must_use]
    pub fn top_k(self, k: impl Into<PerRow<'a, 's, u32>>) -> Self {
        Self { top_k: k.into(), ..self }
    }

    /// Sets the probability of the tokens that are kept of what [`top_k`](Self::top_k) keeps, fifth: see
    /// [`apply_top_p`](crate::ops::apply_top_p).
    #[must_use]
    pub fn top_p(self, p: impl Into<PerRow<'a, 's, f32>>) -> Self {
        Self { top_p: p.into(), ..self }
    }

    /// Sets the least probability of the tokens that are kept, relative to the largest, sixth: see [`apply_min_p`](crate::ops::apply_min_p).
    #[must_use]
    pub fn min_p(self, p: impl Into<PerRow<'a, 's, f32>>) -> Self {
        Self { min_p: p.into(), ..self }
    }

    /// Checks the numbers.
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        self.repetition.map_or(Ok(()), |penalty| check_repetition_penalty(op, penalty.value))?;
        self.presence.map_or(Ok(()), |penalty| check_presence_penalty(op, penalty.value))?;
        check_temperature(op, self.temperature)?;
        check_part(op, "top_p", self.top_p)?;
        check_part(op, "min_p", self.min_p)
    }
}

impl Default for SampleConfig<'_, '_> {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SampleConfig<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleConfig")
            .field("repetition_penalty", &self.repetition.map(|penalty| penalty.value))
            .field("presence_penalty", &self.presence.map(|penalty| penalty.value))
            .field("temperature", &self.temperature)
            .field("top_k", &self.top_k)
            .field("top_p", &self.top_p)
            .field("min_p", &self.min_p)
            .finish()
    }
}
