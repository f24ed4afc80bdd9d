//! `fail/signatures/patterns_and_cfg.rs`, by its help.

use graphable::prelude::*;

#[cfg(debug_assertions)]
#[graphable]
fn encode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}
#[cfg(not(debug_assertions))]
#[graphable]
fn encode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::neg(x)
}
