//! `fail/attributes/host_on_an_expression.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    #[host]
    let n = sizes.iter().sum::<usize>();
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, n as f32)
}
