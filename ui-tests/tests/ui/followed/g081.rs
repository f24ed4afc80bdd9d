//! `fail/capture/shadowed_capture.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let half = |t: &Tensor<f32>| ops::scale(t, 0.5);
    let quarter = |t: &Tensor<f32>| half(&half(t)?);
    let a = #[eager]
    ops::neg(x)?;
    let halved = half(&a)?;
    let b = #[eager]
    ops::neg(&halved)?;
    quarter(&b)
}
