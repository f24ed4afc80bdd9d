//! A word that is almost `early` names a capability, which nobody uses.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(erly)]
    ops::neg(w)?;
    ops::add(&a, &b)
}

#[graphable]
fn to_two_places(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(early, late)]
    ops::neg(w)?;
    ops::add(&a, &b)
}

fn main() {}
