//! An attribute on an assignment belongs to its left operand.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut a = ops::neg(x)?;
    #[eager]
    a = ops::exp(&a)?;
    ops::neg(&a)
}

fn main() {}
