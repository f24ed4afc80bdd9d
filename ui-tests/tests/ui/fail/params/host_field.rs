//! A host field says that it is one.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    eps: f32,
}

fn main() {}
