//! A value that a loop in eager code made.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let counts: Vec<usize> = #[eager(cx)]
    cx.read(x)?.iter().map(|v| *v as usize).collect();
    let mut h = ops::neg(x)?;
    for count in counts {
        h = ops::scale(&h, count as f32)?;
        h = #[eager]
        ops::neg(&h)?;
    }
    Ok(h)
}

fn main() {}
