//! A type alias hides a scalar from the macro, not from the check.

use graphable::prelude::*;

type Position = u32;

#[graphable]
fn decode(x: &Tensor<f32>, position: Position) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    ops::scale(&h, position as f32)
}

fn main() {}
