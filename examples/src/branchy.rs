//! A program whose way depends on its data: `y = x*x; if sum(y) > 0 { y + 1 } else { y - 1 } * 2`.
//!
//! The condition is looked at in an eager region, so the `if` stays in the host code, and each of the four
//! pieces of device code is a segment.
#![allow(clippy::needless_late_init, reason = "both branches assign, as in the literature")]
use graphable::prelude::*;

/// Elements of the input.
pub const ELEMENTS: usize = 64;

/// What the way depends on.
fn positive(cx: &Eager, y: &Tensor<f32>) -> Result<bool> {
    Ok(cx.item(&ops::sum(y, 0)?)? > 0.0)
}

/// Both branches leave the same blocks of memory alive, so they share what follows: four recordings.
#[graphable]
pub fn branchy(
    #[host]
    #[dims(64)]
    x: &Tensor<f32>,
    one: &Param<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::mul(x, x)?;
    let z;
    if #[eager(cx)]
    positive(cx, &y)?
    {
        z = ops::add(&y, one)?;
    } else {
        z = ops::sub(&y, one)?;
    }
    ops::scale(&z, 2.0)
}

/// The second branch makes one more tensor, above which its result lies. The branches leave different states,
/// so what follows is recorded for each: five recordings.
#[graphable]
pub fn apart(
    #[host]
    #[dims(64)]
    x: &Tensor<f32>,
    one: &Param<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::mul(x, x)?;
    let z;
    if #[eager(cx)]
    positive(cx, &y)?
    {
        z = ops::add(&y, one)?;
    } else {
        let less = ops::sub(&y, one)?;
        z = ops::scale(&less, 1.0)?;
    }
    ops::scale(&z, 2.0)
}
