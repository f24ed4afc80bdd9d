//! The error holds ours.

use graphable::prelude::*;

#[derive(Debug)]
struct Failure;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>, Failure> {
    ops::scale(x, n as f32).map_err(|_| Failure)
}

fn main() {}
