//! Printing happens once, when the segment is recorded.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    println!("rank {}", h.rank());
    let h = ops::scale(dbg!(&h), 2.0)?;
    eprintln!("done");
    Ok(h)
}

fn main() {}
