//! A region does not pass what may end the function, and does not itself leave it.

use graphable::prelude::*;

fn look(x: &Tensor<f32>) -> Result<()> {
    ops::neg(x).map(drop)
}

struct Timer;

fn timer(_: &Tensor<f32>) -> Timer {
    Timer
}

#[graphable]
fn behind_a_check(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    assert!(n < 4);
    let a = ops::neg(x)?;
    #[eager(early)]
    look(x)?;
    ops::exp(&a)
}

#[graphable]
fn behind_a_call(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    look(x)?;
    #[eager(early)]
    look(x)?;
    ops::exp(x)
}

#[graphable]
fn leaves(x: &Tensor<f32>, #[key] stop: bool) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    #[eager(early)]
    {
        if stop {
            return ops::neg(x);
        }
    }
    ops::exp(&a)
}

#[graphable]
fn is_held(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let _timer = #[eager(early)]
    timer(x);
    ops::exp(&a)
}

fn main() {}
