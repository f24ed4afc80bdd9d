//! `fail/scalars/aliased_float_key.rs`, by its help.

use graphable::prelude::*;

type Temperature = f32;
#[graphable]
fn decode(x: &Tensor<f32>, #[host] temperature: &Scalar<Temperature>) -> Result<Tensor<f32>> {
    ops::mul(x, temperature)
}
#[derive(Clone, Copy, ConfigValue)]
enum Phase {
    Prefill,
    Decode,
}
#[graphable]
fn by_phase(x: &Tensor<f32>, #[key] phase: Phase) -> Result<Tensor<f32>> {
    match phase {
        Phase::Prefill => ops::neg(x),
        Phase::Decode => ops::exp(x),
    }
}
