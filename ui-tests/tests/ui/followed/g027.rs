//! `fail/handles/parameters.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let zeros = ops::zeros::<f32>(x.scope(), &[n])?;
    ops::add(x, &zeros)
}
