//! What the derives work on.

use graphable::prelude::*;

#[derive(Params)]
union Weights {
    a: u32,
}

#[derive(GraphOutput)]
enum Nothing {}

#[derive(GraphOutput)]
struct Two<'a, 'b> {
    a: Tensor<'a, f32>,
    b: Tensor<'b, f32>,
}

fn main() {}
