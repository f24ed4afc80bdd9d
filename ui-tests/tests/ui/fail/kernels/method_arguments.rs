//! As many arguments as in Rust.

use graphable::prelude::*;

#[kernel]
fn bounded(x: f32) -> f32 {
    x.clamp(1.0)
}

fn main() {}
