//! `fail/side_effects/randomness.rs`, by its help.

use graphable::prelude::*;

fn random() -> f32 {
    0.5
}
#[graphable]
fn decode(x: &Tensor<f32>, #[host] seed: &Scalar<u32>) -> Result<Tensor<f32>> {
    let dropped = #[eager]
    {
        ops::scale(x, random())?
    };
    ops::mul(&dropped, &ops::cast::<_, f32>(seed)?)
}
