//! `fail/side_effects/synchronises.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let y = ops::scale(x, n as f32)?;
    ops::neg(&y)
}
