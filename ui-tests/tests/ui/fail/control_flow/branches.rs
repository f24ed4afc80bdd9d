//! A recording has one path.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, limit: &Scalar<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    if ops::gt(&h, limit)? {
        h = ops::exp(&h)?;
    }
    while limit > 1.0 {
        h = ops::exp(&h)?;
    }
    let a = #[eager]
    ops::neg(&h)?;
    Ok(a)
}

fn main() {}
