//! `fail/host_reads/index.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] i: usize) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    ops::mul(x, &ops::narrow(&h, 0, i, 1)?)
}
