//! Variables are looked up once.

use graphable::prelude::*;

use std::env;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let scale = env::var("SCALE").map_or(1.0, |s| s.len() as f32);
    ops::scale(x, scale * env::args().count() as f32 * n as f32)
}

fn main() {}
