//! `#[host]` and `#[key]` mark a `let`.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    let n = #[host]
    sizes.iter().sum::<usize>();
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, n as f32)
}

fn main() {}
