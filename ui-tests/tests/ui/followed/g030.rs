//! `fail/dims/not_a_dimension.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>, #[dims(N)] y: &Tensor<f32>, z: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(x, &ops::add(y, z)?)
}
