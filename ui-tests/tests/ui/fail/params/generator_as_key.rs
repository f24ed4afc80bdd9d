//! What a generator holds is on the device: it is no key.

use graphable::prelude::*;

#[graphable]
fn keyed(x: &Tensor<f32>, #[key] rng: Rng) -> Result<Tensor<f32>> {
    ops::dropout(&rng, x, 0.1)
}

fn main() {}
