//! `fail/capture/changing_closure.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut i = 0;
    i += 1;
    let a = #[eager]
    ops::neg(x)?;
    let b = ops::scale(&a, i as f32)?;
    i += 1;
    ops::scale(&b, i as f32)
}
