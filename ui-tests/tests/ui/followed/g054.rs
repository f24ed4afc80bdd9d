//! `fail/scalars/reference_to_host.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Settings {
    #[config]
    by: f32,
}
#[graphable]
fn decode(x: &Tensor<f32>, settings: &Settings, #[key] n: usize, #[host] t: &Scalar<f32>) -> Result<Tensor<f32>> {
    ops::mul(&ops::scale(x, settings.by * n as f32)?, t)
}
