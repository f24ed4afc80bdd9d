//! A kernel sees one element, not the tensor.

use graphable::prelude::*;

#[kernel]
fn double(x: &Tensor<f32>) -> f32 {
    2.0
}

fn main() {}
