//! `fail/piecewise/in_driver_position.rs`, by its help.

use graphable::prelude::*;

fn rows(x: &Tensor<'_, f32>) -> Result<usize> {
    x.dim(0).get()
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let v = rows(&ops::exp(&h)?)?;
    for _ in 0..v {
        h = #[eager]
        ops::neg(&h)?;
    }
    let v = ops::sum(&h, 0)?;
    #[host]
    let total = v.count().get()? + n;
    ops::scale(&h, total as f32)
}
