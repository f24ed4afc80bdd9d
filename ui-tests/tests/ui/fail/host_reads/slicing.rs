//! Neither rows nor masks by brackets.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, mask: &Tensor<bool>, #[key] n: usize) -> Result<Tensor<f32>> {
    let head = &x[0..n];
    let row = &x[n];
    let kept = &x[mask];
    ops::add(head, &ops::add(row, kept)?)
}

fn main() {}
