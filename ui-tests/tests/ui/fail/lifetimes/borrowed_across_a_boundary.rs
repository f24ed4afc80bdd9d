//! What is wrong without boundaries is wrong with them.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut v = vec![ops::neg(x)?, ops::exp(x)?];
    let first = &v[0];
    v[0] = ops::exp(x)?;
    let a = #[eager]
    ops::neg(first)?;
    ops::add(&a, &v[0])
}

fn main() {}
