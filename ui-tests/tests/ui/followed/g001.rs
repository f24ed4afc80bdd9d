//! `fail/attributes/misspelt.rs`, by its help.

use graphable::prelude::*;

#[graphable(helper)]
fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(x, 2.0)
}
