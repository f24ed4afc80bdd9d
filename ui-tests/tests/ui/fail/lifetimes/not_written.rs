//! A tensor has the lifetime of its step, and `#[graphable]` writes it.

use graphable::prelude::*;

fn helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::relu(x)
}

struct Halves {
    left: Tensor<f32>,
}

fn main() {}
