//! A guard that a closure has captured.

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

fn seen<T>(_value: &T) {}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn kept_by_a_closure(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let look = move || seen(&guard);
    look();
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn in_a_list(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let look = move || seen(&guard);
    let all = [look];
    if n == 0 {
        drop(all);
    }
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn never_called(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let _end = || drop(guard);
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {}
