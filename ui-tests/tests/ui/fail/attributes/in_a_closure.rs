//! A boundary is not in a closure.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let f = |t: &Tensor<f32>| {
        #[eager]
        ops::exp(t)
    };
    let a = f(x)?;
    #[eager]
    ops::neg(&a)
}

fn main() {}
