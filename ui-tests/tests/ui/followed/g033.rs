//! `fail/dims/symbol_as_a_value.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::reshape(x, (x.dim(0), 8, 8))
}
