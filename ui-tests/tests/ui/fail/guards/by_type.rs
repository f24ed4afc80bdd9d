//! A guard is known by what it does when it goes, whatever it is called.

use graphable::prelude::*;

struct Autocast;

impl Autocast {
    fn new(_factor: f32) -> Self {
        Autocast
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {}
}

fn autocast() -> Result<Autocast> {
    Ok(Autocast)
}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn plainly(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn in_a_tuple(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (_g, k) = (Autocast::new(2.0), 3.0);
    let h = ops::scale(x, k)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn from_a_helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let no_grad = &autocast()?;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn later(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard;
    guard = autocast()?;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {}
