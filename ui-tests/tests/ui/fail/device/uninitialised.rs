//! Variables without a value where the device decides.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y;
    #[device]
    if p {
        y = ops::neg(x)?;
    }
    Ok(y)
}

#[graphable]
fn rounds(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y;
    #[device]
    while p {
        y = ops::neg(x)?;
    }
    Ok(y)
}

#[graphable]
fn moved(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    let all = vec![y];
    #[device]
    while p {
        y = ops::neg(&y)?;
    }
    ops::add(&y, &all[0])
}

fn main() {}
