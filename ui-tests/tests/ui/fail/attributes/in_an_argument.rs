//! A boundary is not in the middle of an expression.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(
        &#[eager]
        ops::exp(x)?,
    )?;
    ops::neg(&a)
}

fn main() {}
