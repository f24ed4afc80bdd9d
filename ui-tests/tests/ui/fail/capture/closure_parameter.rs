//! A function passed in is part of no key.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, f: impl Fn(f32) -> f32) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, f(1.0))
}

fn main() {}
