//! `fail/mutation/in_place.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, y: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let x = ops::add(x, y)?;
    ops::scale(&x, n as f32)
}
#[derive(Params)]
struct Kept {
    sum: State<f32>,
}
#[graphable]
fn keep(x: &Tensor<f32>, kept: &Kept) -> Result<()> {
    ops::store(&kept.sum, x)
}
