//! Names by which other libraries read.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] x: &Tensor<f32>, by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let first = x.to_vec()[0];
    let h = ops::scale(x, first)?;
    let total = h.item();
    ops::scale(&h, total + by.to_scalar())
}

fn main() {}
