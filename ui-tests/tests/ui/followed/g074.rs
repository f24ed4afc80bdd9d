//! `fail/side_effects/randomness.rs`, by its help.

use graphable::prelude::*;

fn random() -> f32 {
    0.5
}
#[graphable]
fn decode(x: &Tensor<f32>, rng: &Rng) -> Result<Tensor<f32>> {
    let dropped = #[eager]
    {
        ops::scale(x, random())?
    };
    ops::mul(&dropped, &ops::uniform(rng, x.scope(), x.shape(), 0.0..1.0)?)
}
