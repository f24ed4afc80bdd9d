//! `fail/signatures/patterns_and_cfg.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] pair: (usize, usize)) -> Result<Tensor<f32>> {
    let (n, m) = pair;
    ops::scale(x, (n + m) as f32)
}
