//! A word that is almost `early` names a capability, which nobody uses.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(erly)]
    ops::neg(w)?;
    let c = #[eager(early, late)]
    ops::neg(w)?;
    ops::add(&ops::add(&a, &b)?, &c)
}

fn main() {}
