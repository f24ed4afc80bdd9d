//! A value on every way.

use graphable::prelude::*;

#[kernel]
fn positive(x: f32) -> f32 {
    if x > 0.0 {
        x
    }
}

#[kernel]
fn negative(x: f32) -> f32 {
    if x < 0.0 { x } else { 0.0 };
}

fn main() {}
