//! The size of a dimension is a number only where no bucket pads it.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let n: usize = x.dim(1);
    ops::scale(x, 1.0 / n as f32)
}

fn main() {}
