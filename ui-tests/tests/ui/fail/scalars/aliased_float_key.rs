//! An alias hides a float from the macro, not from the types.

use graphable::prelude::*;

type Temperature = f32;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] temperature: Temperature) -> Result<Tensor<f32>> {
    ops::scale(x, temperature)
}

fn main() {}
