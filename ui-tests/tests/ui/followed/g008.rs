//! `fail/signatures/half_typed.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let y = ops::exp(&h)?;
    ops::scale(&y, n as f32)
}
