//! `fail/piecewise/no_call.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::exp(h)
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    layer(x)?;
    ops::neg(&h)
}
