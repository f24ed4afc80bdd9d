//! Floats have too many values to be keys.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] temperature: f32) -> Result<Tensor<f32>> {
    ops::scale(x, temperature)
}

fn main() {}
