//! As many outputs as were named, and at most four.

use graphable::{custom::CustomOp, prelude::*};

fn both<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<(Tensor<'s, f32>, Tensor<'s, f32>)> {
    op.call(x.scope()).input(x).output(x.shape()).run()
}

fn many<'s>(op: &CustomOp, x: &Tensor<'s, f32>) -> Result<()> {
    let call = op.call(x.scope()).output::<f32>(&[1]).output::<f32>(&[1]).output::<f32>(&[1]);
    call.output::<f32>(&[1]).output::<f32>(&[1]).run()?;
    Ok(())
}

fn main() {}
