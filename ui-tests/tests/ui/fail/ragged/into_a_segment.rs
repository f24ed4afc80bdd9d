//! A value whose size depends on values has no fixed place in a recording.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<u32>> {
    let where_set = #[eager(cx)]
    cx.nonzero(x)?;
    let n = rows(&where_set)?;
    ops::full(x.scope(), &[1], n)
}

fn rows(r: &Ragged<'_, u32>) -> Result<u32> {
    Ok(r.len() as u32)
}

fn main() {}
