//! Parameters are the fields of the graph's inputs.

use graphable::prelude::*;

#[graphable]
fn decode((x, y): (&Tensor<f32>, &Tensor<f32>), #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(&ops::add(x, y)?, n as f32)
}

#[graphable]
fn encode(x: &Tensor<f32>, #[cfg(debug_assertions)] #[key] n: usize) -> Result<Tensor<f32>> {
    ops::neg(x)
}

fn main() {}
