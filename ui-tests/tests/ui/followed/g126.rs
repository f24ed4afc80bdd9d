//! `fail/device/host_changes.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut rounds = ops::full(x.scope(), (), 0i32)?;
    let mut all = Vec::new();
    let mut y = x.clone();
    #[device]
    while p {
        rounds = ops::add(&rounds, 1)?;
        y = ops::neg(&y)?;
    }
    let y = #[device]
    if p { ops::neg(&y)? } else { ops::exp(&y)? };
    all.push(y);
    ops::mul(&all[0], &ops::cast(&rounds)?)
}
