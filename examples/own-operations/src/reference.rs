//! The model on the host, in double precision.

use std::f64::consts::TAU;

use crate::model::{BINS, HOP, LENGTH, SAMPLES, WINDOWS};

/// Numbers between -0.5 and 0.5 that look random, the same on every machine.
pub fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_add(1).wrapping_mul(2_654_435_761).max(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// The largest difference between two lists, relative to numbers beyond 1; infinite if their lengths differ.
pub fn distance(got: &[f32], expected: &[f64]) -> f64 {
    if got.len() != expected.len() {
        return f64::INFINITY;
    }
    let differences = got.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs() / b.abs().max(1.0));
    differences.fold(0.0, |a, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
}

/// What the model returns for a signal.
pub fn analyze(signal: &[f32], floor: f32, gain: &[f32]) -> Vec<f64> {
    let mut out = Vec::new();
    for row in signal.chunks(SAMPLES) {
        for window in 0..WINDOWS {
            let levels = levels(&row[window * HOP..][..LENGTH], floor / 2.0);
            let largest = levels.iter().fold(f64::MIN, |a, &b| a.max(b));
            let sum: f64 = levels.iter().map(|level| (level - largest).exp()).sum();
            let weights = gain.iter().map(|&g| f64::from(g) / (1.0 + f64::from(g).abs()));
            out.extend(levels.iter().zip(weights).map(|(level, w)| (level - largest).exp() / sum * w));
        }
    }
    out
}

fn levels(samples: &[f32], least: f32) -> Vec<f64> {
    let turn = |i: usize| TAU * i as f64 / LENGTH as f64;
    let faded: Vec<f64> =
        samples.iter().enumerate().map(|(i, &x)| (0.5 - 0.5 * turn(i).cos()) * f64::from(x)).collect();
    let power = |bin: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (i, x) in faded.iter().enumerate() {
            re += x * turn(i * bin % LENGTH).cos();
            im -= x * turn(i * bin % LENGTH).sin();
        }
        re * re + im * im
    };
    (0..BINS).map(|bin| 0.5 * power(bin).max(f64::from(least)).ln()).collect()
}
