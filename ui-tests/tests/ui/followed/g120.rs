//! `fail/device/positions.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    for _ in 0..3 {
        y = ops::neg(&y)?;
    }
    #[device(limit = 1000)]
    while p {
        y = ops::neg(&y)?;
    }
    {
        y = ops::neg(&y)?;
    }
    y = #[device]
    if p { ops::neg(&y)? } else { ops::exp(x)? };
    let z = ops::neg(&y)?;
    let y = #[device]
    if p { ops::neg(x)? } else { ops::exp(x)? };
    let pair = vec![y];
    ops::add(&z, &pair[0])
}
