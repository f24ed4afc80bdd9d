//! Structs, fields and `?`.

use graphable::prelude::*;

#[kernel]
fn length(x: f32, y: f32) -> f32 {
    let v = Vector { x, y };
    (v.x * v.x + v.y * v.y).sqrt()
}

fn main() {}
