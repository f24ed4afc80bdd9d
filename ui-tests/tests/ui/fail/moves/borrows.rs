//! What the borrow checker says of a moved region is what it says of one in its place.

use graphable::prelude::*;

fn last<'a, 's>(all: &'a mut Vec<Tensor<'s, f32>>, t: &Tensor<'s, f32>) -> Result<&'a Tensor<'s, f32>> {
    all.push(ops::neg(t)?);
    Ok(&all[0])
}

#[graphable]
fn decode(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let mut all = Vec::new();
    let a = ops::neg(x)?;
    let b = #[eager(early)]
    last(&mut all, w)?;
    let c = #[eager(early)]
    last(&mut all, w)?;
    ops::add(&a, &ops::add(b, c)?)
}

fn main() {}
