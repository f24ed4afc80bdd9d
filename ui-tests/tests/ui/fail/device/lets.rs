//! `if let` and `while let` on the device.
use graphable::prelude::*;

#[graphable]
fn decode(k: &Scalar<u32>, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if let 3 = k {
        y = ops::neg(&y)?;
    }
    #[device]
    while let true = p {
        y = ops::neg(&y)?;
    }
    #[device]
    if p && let 3 = k {
        y = ops::neg(&y)?;
    }
    Ok(y)
}

fn main() {}
