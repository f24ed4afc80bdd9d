//! A helper is an ordinary function.

use graphable::prelude::*;

#[graphable(helper)]
fn scaled(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

#[graphable(helper)]
fn layer(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::neg(x)
}

fn main() {}
