//! A struct of weights says that it is one.

use graphable::prelude::*;

struct Model {
    w: Param<f32>,
}

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize, model: &Model) -> Result<Tensor<f32>> {
    ops::mul(&ops::scale(x, n as f32)?, &model.w)
}

fn main() {}
