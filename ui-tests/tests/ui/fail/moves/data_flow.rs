//! What a region needs, and what needs it, keep it where it is.

use graphable::prelude::*;

fn look(x: &Tensor<f32>) -> Result<()> {
    ops::neg(x).map(drop)
}

#[graphable]
fn needs_what_is_above(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(early)]
    ops::exp(&a)?;
    ops::add(&a, &b)
}

#[graphable]
fn is_needed_below(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(late)]
    ops::exp(&a)?;
    ops::add(&a, &b)
}

#[graphable]
fn one_name_twice(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let x = #[eager(early)]
    ops::exp(y)?;
    ops::add(&a, &x)
}

#[graphable]
fn changes(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    #[eager]
    look(&h)?;
    h = ops::exp(&h)?;
    #[eager(early)]
    look(&h)?;
    ops::neg(&h)
}

#[graphable]
fn is_taken(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    #[eager(late)]
    look(&a)?;
    drop(a);
    ops::exp(x)
}

fn main() {}
