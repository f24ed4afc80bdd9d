//! `fail/device/operators.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, q: &Scalar<bool>, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if ops::logical_and(p, q)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if ops::logical_or(p, &ops::gt(n, 3)?)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if ops::logical_not(p)? {
        y = ops::neg(&y)?;
    }
    #[device]
    while ops::lt(n, 3)? {
        y = ops::neg(&y)?;
    }
    if x.rank() == 2 {
        y = ops::neg(&y)?;
    }
    Ok(y)
}
