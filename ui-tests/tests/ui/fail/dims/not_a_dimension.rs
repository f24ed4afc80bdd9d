//! Entries of `#[dims]` are symbols and integers.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 1.5)] x: &Tensor<f32>, #[dims(_)] y: &Tensor<f32>, #[dims] z: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(x, &ops::add(y, z)?)
}

fn main() {}
