//! `fail/capture/shadowed_capture.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let half = |t: &Tensor<f32>| ops::scale(t, 0.5);
    let quarter = |t: &Tensor<f32>| half(&half(t)?);
    let a = #[eager]
    ops::neg(x)?;
    let halved = half(&a)?;
    let b = #[eager]
    ops::neg(&halved)?;
    quarter(&b)
}

#[graphable]
fn macros_of_macros(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    macro_rules! by {
        () => {
            1.0f32
        };
    }
    macro_rules! twice {
        () => {
            by!() * 2.0
        };
    }
    let scaled = |t: &Tensor<f32>| ops::scale(t, twice!());
    let a = #[eager]
    ops::neg(x)?;
    macro_rules! by_more {
        () => {
            50.0f32
        };
    }
    ops::scale(&scaled(&a)?, by_more!())
}
