//! In the place of a random number, an operation takes a generator.

use graphable::prelude::*;

#[kernel]
fn noisy(x: f32, r: Random) -> f32 {
    x + r.normal()
}

#[graphable]
fn tensor(x: &Tensor<f32>, noise: &Tensor<u32>) -> Result<Tensor<f32>> {
    noisy(x, noise)
}

fn main() {}
