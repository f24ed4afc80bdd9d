//! One attribute is enough, and two that exclude each other are too many.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] #[host] x: &Tensor<f32>, #[host] #[key] n: &Scalar<u32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    #[eager]
    ops::neg(x)?;
    let b = #[eager]
    #[piecewise]
    ops::neg(&a)?;
    ops::mul(&b, n)
}

fn main() {}
