//! `fail/attributes/helper.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn scaled(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}
#[graphable(helper)]
fn plain(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}
#[graphable]
fn layer(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::neg(x)
}
#[graphable]
fn caller(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    layer(x)?;
    plain(&scaled(&h, 2)?, 3)
}
