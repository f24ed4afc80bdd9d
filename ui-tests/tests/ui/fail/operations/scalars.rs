//! Only numbers of 32 and 64 bits are passed by value.

use graphable::{custom::CustomOp, prelude::*};

fn flagged<'s>(op: &CustomOp, x: &Tensor<'s, f32>, n: usize) -> Result<Tensor<'s, f32>> {
    op.call(x.scope()).input(x).scalar(true).scalar(n).output(x.shape()).run()
}

fn main() {}
