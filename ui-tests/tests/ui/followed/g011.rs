//! `fail/signatures/reference.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let _ = n;
    Ok(x.clone())
}
