//! An operation is a `#[key]` of a graph function, or part of its parameters; one for eager code is neither.

use graphable::{
    custom::{CustomOp, EagerOp},
    prelude::*,
};

#[graphable]
fn eager(x: &Tensor<f32>, #[key] op: EagerOp) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let y = #[eager(cx)]
    op.call(cx).input(&x).output::<f32>(x.shape()).run()?;
    ops::neg(&y)
}

#[derive(Params)]
struct Model {
    weights: Param<f32>,
    fft: CustomOp,
}

fn main() {}
