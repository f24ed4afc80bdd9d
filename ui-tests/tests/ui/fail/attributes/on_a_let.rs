//! A boundary is an expression.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    let a = ops::exp(x)?;
    ops::neg(&a)
}

fn main() {}
