//! A host scalar parameter would be frozen into the recording.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, n: usize, by: f32) -> Result<Tensor<f32>> {
    let h = ops::scale(x, by)?;
    let h = #[eager]
    ops::neg(&h)?;
    ops::scale(&h, n as f32)
}

fn main() {}
