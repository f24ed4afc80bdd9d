//! `fail/host_reads/method.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    let v = #[eager(cx)]
    cx.read(&h)?;
    let a = #[eager]
    ops::scale(&h, v[0])?;
    ops::neg(&a)
}
