//! A launch borrows its operands until it is run.

use graphable::{custom::CustomOp, prelude::*};

fn negated<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let call = op.call(x.scope()).input(&ops::neg(x)?);
    call.output(x.shape()).run()
}

fn main() {}
