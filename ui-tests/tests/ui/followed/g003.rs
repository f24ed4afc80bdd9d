//! `fail/attributes/repeated.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] x: &Tensor<f32>, #[host] n: &Scalar<u32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::neg(x)?;
    ops::mul(&a, &ops::cast::<_, f32>(n)?)
}
