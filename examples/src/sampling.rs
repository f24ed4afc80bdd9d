//! Choosing the next token from the logits.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{Error, Result};

/// Picks tokens: the likeliest, or at random by temperature.
#[derive(Clone, Debug)]
pub struct Sampler {
    temperature: f32,
    random: StdRng,
}

impl Sampler {
    /// A sampler. Temperature 0 is greedy; equal seeds give equal choices.
    ///
    /// Fails if `temperature` is negative or not finite.
    pub fn new(temperature: f32, seed: u64) -> Result<Self> {
        if !temperature.is_finite() || temperature < 0.0 {
            return Err(Error::Option {
                option: format!("--temperature {temperature}"),
                why: "a temperature is a number from 0".into(),
                help: "0 always takes the likeliest token, 0.7 varies a little, 1 samples as trained".into(),
            });
        }
        Ok(Self { temperature, random: StdRng::seed_from_u64(seed) })
    }

    /// The next token's id, which is an index of `logits`. The first of equal ones wins when greedy;
    /// NaN is never chosen. `None` if no logit is a number above negative infinity.
    pub fn next(&mut self, logits: &[f32]) -> Option<u32> {
        let best = greedy(logits)?;
        if self.temperature == 0.0 {
            return Some(best);
        }
        let max = logits[best as usize];
        if max == f32::INFINITY {
            return Some(best);
        }
        // In f64, so that the sum over a large vocabulary does not lose the tail.
        let weight = |l: f32| {
            let w = f64::from((l - max) / self.temperature).exp();
            if w.is_nan() { 0.0 } else { w }
        };
        let total: f64 = logits.iter().map(|&l| weight(l)).sum();
        let mut left = self.random.random::<f64>() * total;
        for (id, &l) in logits.iter().enumerate() {
            left -= weight(l);
            if left < 0.0 {
                return Some(id as u32);
            }
        }
        // Rounding may leave a crumb.
        Some(best)
    }
}

fn greedy(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (id, &l) in logits.iter().enumerate() {
        if l > best.map_or(f32::NEG_INFINITY, |(_, b)| b) {
            best = Some((id, l));
        }
    }
    best.map(|(id, _)| id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_first_maximum_and_no_nan() {
        let mut s = Sampler::new(0.0, 0).unwrap();
        assert_eq!(s.next(&[1.0, f32::NAN, 3.0, 3.0]), Some(2));
        assert_eq!(s.next(&[]), None);
        assert_eq!(s.next(&[f32::NAN, f32::NEG_INFINITY]), None);
    }

    #[test]
    fn a_seed_gives_the_same_choices_and_another_seed_others() {
        let logits: Vec<f32> = (0..100).map(|i| (i % 7) as f32 * 0.1).collect();
        let draw = |seed| {
            let mut s = Sampler::new(1.0, seed).unwrap();
            (0..50).map(|_| s.next(&logits).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn frequencies_follow_the_softmax() {
        let mut s = Sampler::new(0.5, 7).unwrap();
        let logits = [0.0, 0.5 * 2f32.ln(), f32::NEG_INFINITY, f32::NAN];
        let n = 30_000;
        let mut counts = [0usize; 4];
        for _ in 0..n {
            counts[s.next(&logits).unwrap() as usize] += 1;
        }
        // Temperature 0.5 doubles the difference: weights 1 and 2.
        let share = counts[1] as f64 / n as f64;
        assert!((share - 2.0 / 3.0).abs() < 0.01, "{counts:?}");
        assert_eq!(counts[2] + counts[3], 0);
    }

    #[test]
    fn impossible_temperatures_are_refused() {
        for t in [-1.0, f32::NAN, f32::INFINITY] {
            let e = Sampler::new(t, 0).unwrap_err().to_string();
            assert!(e.contains("--temperature") && e.contains("help:"), "{e}");
        }
    }
}
