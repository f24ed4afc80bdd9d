//! What both devices run has no qualifiers.

use graphable::prelude::*;

#[kernel]
const fn double(x: f32) -> f32 {
    2.0 * x
}

#[kernel]
async fn triple(x: f32) -> f32 {
    3.0 * x
}

fn main() {}
