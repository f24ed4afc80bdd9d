//! Functions that the devices compute differently are of `f32`.

use graphable::prelude::*;

#[kernel]
fn scaled(x: f64) -> f64 {
    x.exp() * 0.1
}

fn main() {}
