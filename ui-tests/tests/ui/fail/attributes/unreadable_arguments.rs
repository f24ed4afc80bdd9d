//! Arguments have a few forms.

use graphable::prelude::*;

#[graphable(helper = true)]
fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(x, x)
}

#[graphable]
fn decode(#[host(slice)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager(support: Always)]
    ops::neg(x)?;
    twice(&a)
}

fn main() {}
