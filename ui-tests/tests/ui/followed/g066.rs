//! `fail/piecewise/recursion.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut a = ops::neg(x)?;
    for _ in 0..n {
        a = #[piecewise]
        part(&a)?;
    }
    Ok(a)
}
#[graphable]
fn part(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::neg(x)
}
