//! Misspelt attributes are corrected.

use graphable::prelude::*;

#[graphable(helpr)]
fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(x, 2.0)
}

#[graphable]
fn decode(#[hots] tokens: &Tensor<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eagre]
    ops::exp(x)?;
    let b = #[eager]
    ops::exp(&a)?;
    let c = ops::embedding(tokens, &b)?;
    ops::neg(&c)
}

fn main() {}
