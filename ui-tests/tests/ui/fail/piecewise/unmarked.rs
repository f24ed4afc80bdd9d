//! A call of a function with boundaries is marked.

use graphable::prelude::*;

#[graphable]
fn layer(h: &Tensor<f32>, by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(h)?;
    ops::mul(&a, by)
}

#[graphable]
fn decode(x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let h = layer(x, by)?;
    ops::neg(&h)
}

fn main() {}
