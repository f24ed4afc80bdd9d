//! No operators on tensors: an addition is a call.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = x + x;
    ops::neg(&h)
}

fn main() {}
