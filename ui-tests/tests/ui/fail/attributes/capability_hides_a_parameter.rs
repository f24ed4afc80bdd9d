//! The name in the parentheses is new.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager(x)]
    ops::neg(x)?;
    ops::exp(&a)
}

fn main() {}
