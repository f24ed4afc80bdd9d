//! `#[kernel]` is for functions.

use graphable::prelude::*;

#[kernel]
struct Pair {
    a: f32,
    b: f32,
}

fn main() {}
