//! `fail/attributes/in_an_argument.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let v = #[eager]
    ops::exp(x)?;
    let a = ops::neg(&v)?;
    ops::neg(&a)
}
