//! Elements are not there to be shown.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h = ops::scale(x, n as f32)?;
    assert!(n > 0, "nothing to do for {x}");
    let text = format!("{n}: {} of {h:?}", h);
    ops::scale(&h, text.len() as f32)
}

fn main() {}
