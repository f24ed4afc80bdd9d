//! What the borrow checker says of moved regions is what it says of them in their places.

use graphable::prelude::*;

fn total(sizes: Vec<usize>) -> usize {
    sizes.into_iter().sum()
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let sizes = vec![1, 2];
    let a = ops::neg(x)?;
    #[key]
    let all = #[eager(early)]
    total(sizes);
    #[key]
    let one = #[eager(early)]
    sizes.len();
    ops::scale(&a, (all * one) as f32)
}

fn main() {}
