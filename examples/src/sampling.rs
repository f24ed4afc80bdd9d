//! How the next token is chosen, as options say.

use crate::{Error, Result};

/// Options of sampling, in the order in which they apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingOptions {
    /// Above 1, tokens of the prompt and the answer become less likely; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logits of tokens of the answer; 0 changes nothing.
    pub presence_penalty: f32,
    /// 0 always takes the likeliest token.
    pub temperature: f32,
    /// So many of the likeliest tokens; 0 for all.
    pub top_k: u32,
    /// The likeliest tokens that have this probability together; 1 for all.
    pub top_p: f32,
    /// Tokens that have at least this part of the largest probability; 0 for all.
    pub min_p: f32,
    /// Equal seeds give equal choices.
    pub seed: u64,
}

impl Default for SamplingOptions {
    /// The likeliest token, always.
    fn default() -> Self {
        Self {
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Returns the option that was given and has no effect, if the likeliest token is always taken.
    #[must_use]
    pub fn unused(&self) -> Option<&'static str> {
        let new = Self::default();
        let given = [
            ("--top-k", self.top_k != new.top_k),
            ("--top-p", self.top_p != new.top_p),
            ("--min-p", self.min_p != new.min_p),
            ("--seed", self.seed != new.seed),
        ];
        let unused = given.into_iter().find(|(_, is_given)| *is_given && self.temperature == 0.0);
        unused.map(|(option, _)| option)
    }

    /// Checks that all values are possible.
    ///
    /// # Errors
    /// [`Error::Option`] for the first one that is not.
    pub fn check(&self) -> Result<()> {
        let is_part = |p: f32| (0.0..=1.0).contains(&p);
        let refuse = |is_valid: bool, name: &str, value: f32, reason: &str, help: &str| match is_valid {
            true => Ok(()),
            false => Err(Error::Option {
                option: format!("--{name} {value}"),
                reason: reason.into(),
                help: help.into(),
            }),
        };
        refuse(
            self.temperature.is_finite() && self.temperature >= 0.0,
            "temperature",
            self.temperature,
            "a temperature is a number from 0",
            "0 always takes the likeliest token, 0.7 varies a little, 1 samples as trained",
        )?;
        refuse(
            is_part(self.top_p),
            "top-p",
            self.top_p,
            "it is a probability, from 0 to 1",
            "0.9 leaves out the least likely tokens, 1 none",
        )?;
        refuse(
            is_part(self.min_p),
            "min-p",
            self.min_p,
            "it is a part of the largest probability, from 0 to 1",
            "0.05 leaves out tokens of less than a twentieth of it, 0 none",
        )?;
        refuse(
            self.repetition_penalty.is_finite() && self.repetition_penalty > 0.0,
            "repetition-penalty",
            self.repetition_penalty,
            "it divides logits, so it is a number above 0",
            "1.1 makes repetitions a little rarer, 1 changes nothing",
        )?;
        refuse(
            self.presence_penalty.is_finite(),
            "presence-penalty",
            self.presence_penalty,
            "it is subtracted from logits, so it is a number",
            "0.5 makes repetitions a little rarer, 0 changes nothing",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused() {
        let new = SamplingOptions::default;
        let refused = |options: SamplingOptions, name: &str| {
            let e = options.check().unwrap_err().to_string();
            assert!(e.contains(name) && e.contains("help:"), "{e}");
        };
        for value in [-1.0, f32::NAN, f32::INFINITY] {
            refused(SamplingOptions { temperature: value, ..new() }, "--temperature");
            refused(SamplingOptions { top_p: value, ..new() }, "--top-p");
            refused(SamplingOptions { min_p: value, ..new() }, "--min-p");
            refused(SamplingOptions { repetition_penalty: value, ..new() }, "--repetition-penalty");
        }
        refused(SamplingOptions { top_p: 1.5, ..new() }, "--top-p");
        refused(SamplingOptions { repetition_penalty: 0.0, ..new() }, "--repetition-penalty");
        refused(SamplingOptions { presence_penalty: f32::NAN, ..new() }, "--presence-penalty");
        let all = SamplingOptions {
            repetition_penalty: 1.1,
            presence_penalty: -0.5,
            temperature: 0.8,
            top_k: 40,
            top_p: 0.0,
            min_p: 1.0,
            seed: 7,
        };
        all.check().unwrap();
        new().check().unwrap();
    }

    #[test]
    fn options_without_effect_are_named() {
        let new = SamplingOptions::default;
        assert_eq!(new().unused(), None);
        assert_eq!(SamplingOptions { repetition_penalty: 1.5, ..new() }.unused(), None);
        assert_eq!(SamplingOptions { top_p: 0.5, seed: 3, ..new() }.unused(), Some("--top-p"));
        assert_eq!(SamplingOptions { top_p: 0.5, temperature: 0.1, ..new() }.unused(), None);
    }
}
