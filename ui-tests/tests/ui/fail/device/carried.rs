//! Values of the host that leave a body.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut sign = 1.0;
    let mut y = x.clone();
    #[device]
    if p {
        sign = -1.0;
        y = ops::exp(&y)?;
    }
    let count = #[device]
    match k {
        0 => 1,
        _ => 2,
    };
    ops::scale(&y, sign * count as f32)
}

#[graphable]
fn grow(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut size = x.rank();
    let mut y = x.clone();
    #[device]
    while p {
        size = size * 2;
        y = ops::neg(&y)?;
    }
    ops::scale(&y, size as f32)
}

fn main() {}
