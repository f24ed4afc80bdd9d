//! A new user's crate: an MLP, a transformer block with a bucketed prefill, an operation of its own, and a serving loop.

#![deny(warnings)]

mod block;
mod mlp;
mod own_op;
mod reference;
mod serving;

use graphable::prelude::*;

/// Numbers between -0.5 and 0.5 that look random, the same on every machine.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// Stops the program where two lists of numbers differ.
fn assert_close(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (index, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{what}: element {index} is {a} instead of {b}");
    }
}

fn main() -> Result<()> {
    mlp::run()?;
    block::run()?;
    own_op::run()?;
    serving::run()
}
