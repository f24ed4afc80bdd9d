//! `fail/device/carried.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = ops::full(x.scope(), (), 0i32)?;
    let mut y = x.clone();
    #[device]
    while p {
        n = ops::add(&n, 1)?;
        y = ops::exp(&y)?;
    }
    ops::mul(&y, &ops::cast(&n)?)
}
