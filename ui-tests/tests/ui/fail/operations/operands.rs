//! Inputs are on the device, of the type that is named; only state is written in place.

use graphable::{custom::CustomOp, prelude::*};

fn from_the_host<'s>(op: &CustomOp, x: &Tensor<'s, f32>, table: Vec<f32>) -> Result<Tensor<'s, f32>> {
    op.call(x.scope()).input::<f32>(&table).output(x.shape()).run()
}

fn of_another_type<'s>(op: &CustomOp, x: &Tensor<'s, u32>) -> Result<Tensor<'s, f32>> {
    op.call(x.scope()).input::<f32>(x).output(x.shape()).run()
}

fn writes_a_parameter(op: &CustomOp, x: &Tensor<'_, f32>, weights: &Param<f32>) -> Result<()> {
    op.call(x.scope()).input(x).state(weights).run()
}

fn writes_a_tensor(op: &CustomOp, x: &Tensor<'_, f32>) -> Result<()> {
    op.call(x.scope()).state(x).run()
}

fn main() {}
