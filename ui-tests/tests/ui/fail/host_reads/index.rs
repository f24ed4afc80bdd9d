//! Elements cannot be indexed.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    ops::scale(x, h[0])
}

fn main() {}
