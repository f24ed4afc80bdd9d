//! `fail/attributes/capability_and_support.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let n = #[eager(cx)]
    cx.read(x)?.len();
    assert!(n > 0);
    ops::neg(x)
}
