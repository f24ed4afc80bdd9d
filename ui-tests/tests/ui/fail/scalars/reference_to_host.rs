//! A reference to a host value is refused where the graph is used.

use graphable::prelude::*;

struct Settings {
    factor: f32,
}

#[graphable]
fn decode(x: &Tensor<f32>, settings: &Settings) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    let factor = settings;
    ops::scale(&h, factor.factor + twice(settings))
}

fn twice(settings: &Settings) -> f32 {
    settings.factor * 2.0
}

fn main() {}
