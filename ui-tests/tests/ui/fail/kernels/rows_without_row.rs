//! Without a row it is a `#[kernel]`.

use graphable::prelude::*;

#[kernel(rows)]
fn double(x: f32) -> f32 {
    2.0 * x
}

fn main() {}
