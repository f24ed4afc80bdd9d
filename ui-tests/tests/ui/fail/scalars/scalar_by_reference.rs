//! A reference to a number freezes like the number.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, position: &usize, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, (*position + n) as f32)
}

fn main() {}
