//! A symbol has no value in the body.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::reshape(x, &[B * 64])
}

fn main() {}
