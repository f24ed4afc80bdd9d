//! `fail/device/no_else.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p {
        ops::neg(x)?
    } else {
        x.clone()
    };
    ops::exp(&y)
}
