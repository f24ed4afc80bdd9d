//! `fail/device/boundaries.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::neg(x)
}

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::exp(x)?;
    let v = #[eager]
    f(&x)?;
    #[host]
    let n = x.rank();
    let mut y = x.clone();
    #[device]
    if p {
        y = v;
    } else {
        y = ops::scale(&y, n as f32)?;
    }
    Ok(y)
}
