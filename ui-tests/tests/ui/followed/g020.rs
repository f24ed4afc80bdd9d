//! `fail/scalars/bare.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let h = ops::mul(x, by)?;
    let h = #[eager]
    ops::neg(&h)?;
    ops::scale(&h, n as f32)
}
