//! Each segment makes its closures anew.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = 1.0;
    let by_n = move |t: &Tensor<f32>| ops::scale(t, n);
    n += 1.0;
    let a = #[eager]
    ops::neg(x)?;
    ops::scale(&by_n(&a)?, n)
}

fn taken<'s>(list: Vec<Tensor<'s, f32>>) -> Result<Tensor<'s, f32>> {
    ops::neg(&list[0])
}

#[graphable]
fn kept_by_a_macro(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::exp(x)?;
    let negated = || taken(vec![h]);
    h = ops::scale(x, 2.0)?;
    let a = #[eager]
    ops::neg(&h)?;
    ops::add(&negated()?, &a)
}

#[graphable]
fn assigned(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut by: fn(f32) -> f32 = |v| v * 2.0;
    let a = #[eager]
    ops::scale(x, by(1.0))?;
    by = |v| v * 3.0;
    ops::scale(&a, by(1.0))
}

fn main() {}
