//! A graph gives values.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<&Tensor<f32>> {
    Ok(x)
}

fn main() {}
