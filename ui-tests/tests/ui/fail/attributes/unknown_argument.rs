//! An unknown argument of `#[eager]`.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager(suport = Always)]
    ops::exp(x)?;
    ops::neg(&a)
}

fn main() {}
