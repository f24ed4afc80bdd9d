//! A tensor is no condition: its values are on the device.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    if h > 0.0 { ops::neg(&h) } else { ops::exp(&h) }
}

fn main() {}
