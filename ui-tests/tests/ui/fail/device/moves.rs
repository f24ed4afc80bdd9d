//! What an arm moves is gone after it, and what a round moves is gone in the next one.
use graphable::prelude::*;

#[graphable(helper)]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    let z = #[device]
    if p { keep(y) } else { ops::exp(&y)? };
    ops::add(&y, &z)
}

#[graphable(helper)]
fn rounds(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    while p {
        z = keep(y);
    }
    Ok(z)
}

fn keep(x: Tensor<'_, f32>) -> Tensor<'_, f32> {
    x
}

fn main() {}
