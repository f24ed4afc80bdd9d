//! A region that may be captured launches nothing that may not be, and passes no capability of eager code.

use graphable::{custom::EagerOp, prelude::*};

static SORT: std::sync::OnceLock<EagerOp> = std::sync::OnceLock::new();

fn largest<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<f32> {
    cx.item(&ops::max(x, 0)?)
}

#[graphable]
fn sorted(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let Some(sort) = SORT.get() else { return Ok(x) };
    let y = #[eager(cx, support = Always)]
    sort.call(cx).input(&x).output(x.shape()).run()?;
    ops::neg(&y)
}

#[graphable]
fn scaled(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    #[key]
    let n: u32 = #[eager(cx, support = Always)]
    {
        largest(cx, &x)? as u32
    };
    ops::scale(&x, n as f32)
}

fn main() {}
