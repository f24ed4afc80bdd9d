//! Floats are compared.

use graphable::prelude::*;

#[kernel]
fn step(x: f32) -> f32 {
    match x {
        0.0 => 0.5,
        _ => 1.0,
    }
}

fn main() {}
