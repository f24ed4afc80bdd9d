//! A key is a plain value.

use graphable::prelude::*;

#[derive(Clone, ConfigValue)]
struct Settings {
    eps: f32,
}

#[graphable]
fn decode(x: &Tensor<f32>, #[key] settings: Settings) -> Result<Tensor<f32>> {
    ops::scale(x, settings.eps)
}

fn main() {}
