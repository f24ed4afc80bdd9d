//! `fail/device/predicates.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[key] flag: bool, t: &Scalar<f32>, m: &Tensor<f32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    if flag {
        y = ops::neg(&y)?;
    }
    #[device]
    if ops::gt(t, 0.0)? {
        y = ops::neg(&y)?;
    }
    let x = ops::max(&ops::add(m, t)?, 0)?;
    #[device]
    while ops::gt(&x, 0.0)? {
        y = ops::neg(&y)?;
    }
    Ok(y)
}
