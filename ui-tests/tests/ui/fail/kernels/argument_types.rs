//! Tensors of other elements than the signature says.

use graphable::prelude::*;

#[kernel]
fn selected(keep: bool, x: f32) -> f32 {
    if keep { x } else { 0.0 }
}

#[graphable]
fn forward(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = selected(x, x)?;
    ops::neg(&a)
}

fn main() {}
