//! A reference to an unsized value that a segment would change: one error, about the value.

use graphable::prelude::*;

fn same<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 1.0)
}

#[graphable]
fn of_a_slice(#[key] sizes: Vec<usize>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut sizes = sizes;
    let part = &mut sizes[1..];
    let mut h = #[eager]
    same(x)?;
    for n in part {
        h = ops::scale(&h, *n as f32)?;
    }
    Ok(h)
}

#[graphable]
fn of_an_iterator(xs: &[Tensor<f32>], x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let mut all = xs.iter();
    let it: &mut dyn Iterator<Item = &Tensor<f32>> = &mut all;
    let mut h = #[eager]
    same(x)?;
    for y in it {
        h = ops::add(&h, y)?;
    }
    Ok(h)
}

fn main() {}
