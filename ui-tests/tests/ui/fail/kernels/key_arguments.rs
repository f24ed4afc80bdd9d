//! A `#[key]` parameter takes a number of its type.

use graphable::prelude::*;

#[kernel]
fn powered(x: f32, #[key] times: u32) -> f32 {
    let mut y = x;
    for _ in 0..times {
        y *= x;
    }
    y
}

#[graphable]
fn tensors(x: &Tensor<f32>, times: &Tensor<u32>) -> Result<Tensor<f32>> {
    powered(x, times)
}

#[graphable]
fn signs(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    powered(x, -1)
}

fn main() {}
