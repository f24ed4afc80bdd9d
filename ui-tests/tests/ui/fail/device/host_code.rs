//! Control flow of the device where host code runs.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[eager]
    ops::neg(x)?;
    #[host]
    let z = #[device]
    if p { ops::neg(&y)? } else { ops::exp(&y)? };
    ops::add(&y, &z)
}

fn main() {}
