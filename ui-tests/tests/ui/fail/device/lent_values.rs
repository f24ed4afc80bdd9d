//! References to tensors as the values of arms.
use graphable::prelude::*;

#[graphable(helper)]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>, z: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p { x } else { z };
    let w = #[device]
    match k {
        0 => ops::neg(x)?,
        _ => x,
    };
    ops::add(y, &w)
}

fn main() {}
