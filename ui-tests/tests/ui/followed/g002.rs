//! `fail/attributes/misspelt.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] tokens: &Tensor<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(x)?;
    let c = ops::embedding(tokens, &a)?;
    ops::neg(&c)
}
