//! `fail/derives/targets.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
enum Weights {
    A(Param<f32>),
    B,
}
#[derive(GraphOutput)]
struct Two<'a> {
    a: Tensor<'a, f32>,
    b: Tensor<'a, f32>,
}
