//! A float read from the device is another one on every call.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let factor: f32 = #[eager(cx)]
    cx.item(x)?;
    ops::scale(x, factor)
}

fn main() {}
