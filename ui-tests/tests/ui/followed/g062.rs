//! `fail/piecewise/argument_with_calls.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::exp(h)
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    #[piecewise]
    layer(&a)
}
