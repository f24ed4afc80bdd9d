//! `fail/attributes/in_a_closure.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn f(t: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[eager]
    ops::exp(t)
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[piecewise]
    f(x)?;
    #[eager]
    ops::neg(&a)
}
