//! `fail/host_reads/operators.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, y: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let a = ops::add(x, y)?;
    let b = ops::neg(x)?;
    let mut c = ops::scale(x, n as f32)?;
    c = ops::scale(&c, 2.0)?;
    let d = ops::ge(x, y)?;
    ops::where_(&d, &ops::add(&a, &b)?, &c)
}
