//! Floats are computed in `f32`.

use graphable::prelude::*;

#[kernel]
fn scaled(x: f64) -> f32 {
    (x * 0.1) as f32
}

fn main() {}
