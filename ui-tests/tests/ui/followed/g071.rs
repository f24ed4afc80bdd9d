//! `fail/side_effects/unknown_macro.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let a = #[eager]
    ops::exp(x)?;
    ops::add(&a, &h)
}
