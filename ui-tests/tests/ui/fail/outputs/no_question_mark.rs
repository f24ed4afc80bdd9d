//! A result that nobody looked at.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x);
    let a = #[eager]
    ops::exp(x)?;
    ops::add(&a, &h)
}

fn main() {}
