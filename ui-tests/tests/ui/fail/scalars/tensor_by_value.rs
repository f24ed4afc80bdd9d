//! Tensors are passed by reference.

use graphable::prelude::*;

#[graphable]
fn decode(x: Tensor<f32>, y: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::neg(&x)?;
    ops::add(&a, y)
}

fn main() {}
