//! A guard in a variable that is made of another one of its name.

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

struct AMP(f32);

impl Drop for AMP {
    fn drop(&mut self) {}
}

fn seen<T>(_value: &T) {}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn under_its_name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let mut guard = guard;
    seen(&mut guard);
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn in_a_tuple(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let guard = (guard, 1usize);
    let h = ops::scale(x, guard.1 as f32)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn in_capitals(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = AMP(2.0);
    let h = ops::scale(x, guard.0)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {}
