//! `fail/host_reads/conversions.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, by: &Scalar<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let v = #[eager(cx)]
    cx.read(&by)?;
    let a = #[eager]
    ops::scale(x, v[0])?;
    ops::scale(&a, n as f32)
}
