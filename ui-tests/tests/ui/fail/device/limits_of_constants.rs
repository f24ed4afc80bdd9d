//! A limit is a `u32`.
use graphable::prelude::*;

const LONG: u64 = 1000;

#[graphable]
fn decode(#[key] most: usize, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<u32>> {
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = most)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = LONG)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    Ok(i)
}

fn main() {}
