//! `fail/dims/beyond_the_rank.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::softmax(x, 1)
}
