//! A function without boundaries is called plainly.

use graphable::prelude::*;

#[graphable]
fn twice(h: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(h, 2.0)
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[piecewise]
    twice(x)
}

fn main() {}
