//! An operator between a tensor and what a region gave: what to write is the operation of both.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    let mut y = ops::exp(x)?;
    y += x;
    let z = &h * x;
    let w = 1.0 - &y;
    ops::add(&z, &w)
}

fn main() {}
