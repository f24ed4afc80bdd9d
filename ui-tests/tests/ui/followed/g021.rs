//! `fail/scalars/alias.rs`, by its help.

use graphable::prelude::*;

type Position = u32;
#[graphable]
fn decode(x: &Tensor<f32>, #[key] position: Position) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    ops::scale(&h, position as f32)
}
