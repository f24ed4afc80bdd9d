//! `fail/scalars/collections.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(
    x: &Tensor<f32>,
    #[key] sizes: Vec<usize>,
    #[host] weights: &Tensor<f32>,
    #[key] name: &str,
) -> Result<Tensor<f32>> {
    ops::mul(&ops::scale(x, (sizes.len() + name.len()) as f32)?, weights)
}
#[graphable]
fn encode(x: &Tensor<f32>, #[host] sizes: &Tensor<u32>) -> Result<Tensor<f32>> {
    ops::embedding(sizes, x)
}
