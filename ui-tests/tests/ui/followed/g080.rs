//! `fail/capture/move_closure.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = 1.0;
    let fixed = n;
    let by_n = move |t: &Tensor<f32>| ops::scale(t, fixed);
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
    let fixed = h;
    let negated = || taken(vec![fixed]);
    h = ops::scale(x, 2.0)?;
    let a = #[eager]
    ops::neg(&h)?;
    ops::add(&negated()?, &a)
}

#[graphable]
fn assigned(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let by = |v: f32| v * 2.0;
    let a = #[eager]
    ops::scale(x, by(1.0))?;
    let more = |v: f32| v * 3.0;
    ops::scale(&a, more(1.0))
}
