//! `fail/capture/move_closure.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = 1.0;
    let fixed = n;
    let by_n = move |t: &Tensor<f32>| ops::scale(t, fixed);
    n += 1.0;
    let a = #[eager]
    ops::neg(x)?;
    ops::scale(&by_n(&a)?, n)
}
