//! `fail/side_effects/printing.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    #[eager]
    {
        println!("rank {}", h.rank());
    }
    ops::scale(&h, 2.0)
}
