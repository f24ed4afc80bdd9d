//! A mistake inside an arm is reported once, where it is.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p {
        y = ops::neg(&missing)?;
    } else {
        y = own(&y, "two")?;
    }
    #[device]
    while ops::lt(k, &absent)? {
        y = own(&y, 2.0)?.len();
    }
    Ok(y)
}

fn own<'s>(x: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
    ops::scale(x, by)
}

fn main() {}
