//! An alias hides what a graph gives back.

use graphable::prelude::*;

type TensorResult<'s> = Result<Tensor<'s, f32>>;

#[graphable]
fn decode<'s>(x: &Tensor<'s, f32>, #[key] n: usize) -> TensorResult<'s> {
    ops::scale(x, n as f32)
}

#[graphable]
fn encode(x: &Tensor<f32>, #[key] n: usize) -> Tensor<f32> {
    ops::scale(x, n as f32).unwrap()
}

fn main() {}
