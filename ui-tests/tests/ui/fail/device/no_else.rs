//! A value that only one arm has.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p {
        ops::neg(x)?
    };
    ops::add(
        &y,
        &(#[device]
        if p {
            ops::exp(x)?
        }),
    )
}

fn main() {}
