//! A guard that ends on some ways only, is written out, or is borrowed inside of another value.

use graphable::prelude::*;

struct Autocast;

impl Autocast {
    fn new(_factor: f32) -> Self {
        Autocast
    }
}

struct Scope {
    factor: f32,
}

impl Drop for Autocast {
    fn drop(&mut self) {}
}

impl Drop for Scope {
    fn drop(&mut self) {}
}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(q)
}

#[graphable]
fn in_one_arm(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let guard = Autocast::new(2.0);
    let h = ops::neg(x)?;
    if n == 0 {
        drop(guard);
    }
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn written_out(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scope = Scope { factor: 2.0 };
    let h = ops::scale(x, scope.factor)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn inside_of_a_literal(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scopes = Some((Scope { factor: 2.0 }, 1usize));
    let h = ops::scale(x, scopes.as_ref().map_or(1.0, |s| s.0.factor))?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn lent_to_a_tuple(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let _pair = (&Autocast::new(2.0), 1.0);
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

#[graphable]
fn chosen_by_an_arm(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let guard;
    if n == 0 {
        guard = Autocast::new(1.0);
    } else {
        guard = Autocast::new(2.0);
    }
    let _last = &guard;
    let h = ops::neg(x)?;
    let a = #[eager]
    attention(&h)?;
    ops::neg(&a)
}

fn main() {}
