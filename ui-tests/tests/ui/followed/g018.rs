//! `fail/signatures/too_many.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Many {
    weights: Vec<Param<f32>>,
    w: Param<f32>,
}
#[graphable]
fn decode(x: &Tensor<f32>, many: &Many) -> Result<Tensor<f32>> {
    let mut h = ops::mul(x, &many.w)?;
    for w in &many.weights {
        h = ops::mul(&h, w)?;
    }
    Ok(h)
}
