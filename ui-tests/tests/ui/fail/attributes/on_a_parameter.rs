//! A boundary is an expression.

use graphable::prelude::*;

#[graphable]
fn decode(#[eager] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

fn main() {}
