//! A tensor's values cannot be formatted.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    assert!(x.rank() == 1, "the values are {x}");
    ops::neg(x)
}

fn main() {}
