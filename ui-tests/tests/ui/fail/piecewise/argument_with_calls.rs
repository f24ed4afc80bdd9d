//! Arguments of a marked call are not computed in place: no segment would hold them.

use graphable::prelude::*;

#[graphable]
fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::exp(h)
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[piecewise]
    layer(&ops::neg(x)?)
}

fn main() {}
