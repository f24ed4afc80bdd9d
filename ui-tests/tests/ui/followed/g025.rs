//! `fail/scalars/host_by_value.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    ops::mul(x, by)
}
