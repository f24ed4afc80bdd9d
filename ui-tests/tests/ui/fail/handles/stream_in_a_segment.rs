//! A handle is part of no key, whatever its name.

use graphable::prelude::*;

struct Stream(u64);

#[graphable]
fn decode(x: &Tensor<f32>, stream: &Stream) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::neg(x)?;
    ops::scale(&a, stream.0 as f32)
}

fn main() {}
