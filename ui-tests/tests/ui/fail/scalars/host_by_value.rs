//! A refreshed scalar is in device memory.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[host] by: f32) -> Result<Tensor<f32>> {
    ops::scale(x, by)
}

fn main() {}
