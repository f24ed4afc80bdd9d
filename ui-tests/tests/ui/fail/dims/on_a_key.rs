//! Only tensors have dimensions.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[dims(B)] #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

fn main() {}
