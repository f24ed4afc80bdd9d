//! A cell is part of no key: a replay would not see it change.

use graphable::prelude::*;

use std::cell::Cell;

#[graphable]
fn decode(x: &Tensor<f32>, counter: &Cell<u32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, counter.get() as f32)
}

fn main() {}
