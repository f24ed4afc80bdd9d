//! A segment makes its closures anew; host code has one, which holds what it changes.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut i = 0;
    let mut next = || {
        i += 1;
        i
    };
    let a = #[eager]
    ops::neg(x)?;
    let b = ops::scale(&a, next() as f32)?;
    #[host]
    let j = next();
    ops::scale(&b, j as f32)
}

fn main() {}
