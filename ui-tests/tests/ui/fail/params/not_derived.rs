//! A struct of weights says that it is one.

use graphable::prelude::*;

struct Model {
    w: Param<f32>,
}

#[graphable]
fn decode(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    ops::mul(x, &model.w)
}

fn main() {}
