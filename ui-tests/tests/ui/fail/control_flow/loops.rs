//! Elements are not there to be looped over.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut total = n as f32;
    for v in x.iter() {
        total += v;
    }
    for row in x {
        total += row;
    }
    ops::scale(x, total)
}

fn main() {}
