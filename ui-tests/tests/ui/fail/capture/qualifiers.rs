//! Kinds of functions that cannot be recorded.

use graphable::prelude::*;

#[graphable]
async fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

#[graphable]
unsafe extern "C" fn encode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

fn main() {}
