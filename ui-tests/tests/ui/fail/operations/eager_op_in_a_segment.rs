//! An operation for eager code needs the capability of eager code, which a segment does not have.

use graphable::{custom::EagerOp, prelude::*};

static SORT: std::sync::OnceLock<EagerOp> = std::sync::OnceLock::new();

#[graphable]
fn sorted(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let Some(sort) = SORT.get() else { return Ok(x) };
    sort.call(x.scope()).input(&x).output(x.shape()).run()
}

fn main() {}
