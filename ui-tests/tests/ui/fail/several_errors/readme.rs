//! The program whose errors README.md shows.
use graphable::prelude::*;

#[graphable]
#[rustfmt::skip]
fn decode(#[host] #[dims(B)] tokens: &Tensor<u32>, window: usize, table: &Param<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::embedding(tokens, table)?;
    for _ in 0..window {
        println!("{h:?}");
        h = #[eager(suport = Always)]
        ops::exp(&h)?;
    }
    Ok(h)
}

fn main() {}
