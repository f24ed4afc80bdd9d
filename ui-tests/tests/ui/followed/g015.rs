//! `fail/capture/closure_parameter.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode<F>(x: &Tensor<f32>, f: F) -> Result<Tensor<f32>>
where
    F: Fn(f32) -> f32,
{
    ops::scale(x, f(1.0))
}
