//! Each segment makes its closures anew, also one that took a variable before an arm gave it another value.

use graphable::prelude::*;

fn halved(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

#[graphable]
fn decode(#[key] again: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let kept = || halved(h);
    if again {
        h = ops::scale(x, 3.0)?;
    } else {
        h = ops::scale(x, 2.0)?;
    }
    let a = #[eager]
    ops::neg(&h)?;
    ops::add(&a, &kept()?)
}

fn main() {}
