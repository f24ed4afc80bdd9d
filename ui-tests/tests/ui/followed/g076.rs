//! `fail/side_effects/environment.rs`, by its help.

use graphable::prelude::*;

use std::env;
#[graphable]
fn decode(x: &Tensor<f32>, #[key] arguments: usize) -> Result<Tensor<f32>> {
    #[host]
    let scale = env::var("SCALE").map_or(1, |s| s.len());
    ops::scale(x, (scale * arguments) as f32)
}
