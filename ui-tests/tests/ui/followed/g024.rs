//! `fail/scalars/key_by_reference.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    ops::scale(x, sizes.len() as f32)
}
