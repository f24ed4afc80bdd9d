//! `fail/attributes/unknown_support.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let b = #[eager(support = Always)]
    ops::exp(x)?;
    ops::neg(&b)
}
