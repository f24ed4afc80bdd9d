//! An unknown support level, and one without its name.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager(support = UniformBach)]
    ops::exp(x)?;
    let b = #[eager(Always)]
    ops::exp(&a)?;
    ops::neg(&b)
}

fn main() {}
