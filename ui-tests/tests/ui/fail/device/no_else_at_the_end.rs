//! The value of a function that only one arm has.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[device]
    if p {
        ops::neg(x)
    }
}

fn main() {}
