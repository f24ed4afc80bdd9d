//! A function of its own instead.

use graphable::prelude::*;

#[kernel]
fn twice(x: f32) -> f32 {
    let f = |y: f32| y * y;
    f(f(x))
}

fn main() {}
