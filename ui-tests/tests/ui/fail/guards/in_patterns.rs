//! A pattern may leave a guard where it was, or borrow from a value without a name.

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

struct Wrap {
    g: Autocast,
    n: usize,
}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn by_ref(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let ref _q = guard;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn of_an_array(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let all = [guard];
    let [ref _q] = all;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn beside_a_field(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let w = Wrap { g: guard, n: 1 };
    let Wrap { n, .. } = w;
    let h = ops::scale(x, n as f32)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn beside_a_tensor(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let w = (Autocast::new(2.0), ops::exp(x)?);
    let (_, t) = w;
    let h = ops::neg(&t)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn without_a_name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (ref _g, k) = (Autocast::new(2.0), 3.0);
    let h = ops::scale(x, k)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn under_another_name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let held = guard;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {}
