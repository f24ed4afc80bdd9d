//! Only calls are marked.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    x;
    ops::neg(h)
}

fn main() {}
