//! `#[graphable]` is for code.

use graphable::prelude::*;

#[graphable]
struct Model {
    w: Param<f32>,
}

fn main() {}
