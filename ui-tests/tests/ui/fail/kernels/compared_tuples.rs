//! rustc compares tuples, and only rustc knows that these are some.

use graphable::prelude::*;

#[kernel]
fn split(x: f32) -> (f32, f32) {
    (x.max(0.0), x.min(0.0))
}

#[kernel]
fn same(x: f32, y: f32) -> bool {
    split(x) == split(y)
}

fn main() {}
