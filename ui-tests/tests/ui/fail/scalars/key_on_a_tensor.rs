//! What a tensor holds cannot select a recording.

use graphable::prelude::*;

#[graphable]
fn decode(#[key] x: &Tensor<f32>, #[key] n: &usize) -> Result<Tensor<f32>> {
    ops::scale(x, *n as f32)
}

fn main() {}
