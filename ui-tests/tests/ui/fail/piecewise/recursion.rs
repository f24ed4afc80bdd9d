//! A plan has an end.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::neg(x)?;
    if n == 0 {
        return Ok(a);
    }
    #[piecewise]
    decode(&a, n - 1)
}

fn main() {}
