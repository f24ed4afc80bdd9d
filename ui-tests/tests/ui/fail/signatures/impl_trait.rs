//! What cannot be named cannot be made by a replay.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<impl Sized> {
    ops::scale(x, n as f32)
}

#[graphable]
fn encode(x: &Tensor<f32>, #[key] n: impl Into<usize>) -> Result<Tensor<f32>> {
    ops::scale(x, n.into() as f32)
}

fn main() {}
