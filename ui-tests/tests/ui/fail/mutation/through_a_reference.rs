//! A replay does not run the body, so it would not write again.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut calls = n;
    let counter = &mut calls;
    let h = #[eager]
    ops::neg(x)?;
    *counter += ops::scale(&h, 1.0)?.rank();
    ops::scale(&h, 2.0)
}

fn main() {}
