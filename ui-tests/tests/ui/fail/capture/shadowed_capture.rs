//! A closure must find what it meant: another closure that it calls, constants and functions.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let half = |t: &Tensor<f32>| ops::scale(t, 0.5);
    let quarter = |t: &Tensor<f32>| half(&half(t)?);
    let a = #[eager]
    ops::neg(x)?;
    let half = half(&a)?;
    let b = #[eager]
    ops::neg(&half)?;
    quarter(&b)
}

const BY: f32 = 2.0;

#[graphable]
fn items(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scaled = |t: &Tensor<f32>| ops::scale(t, BY);
    let by = Some(BY);
    let a = #[eager]
    ops::neg(x)?;
    if BY > 1.0 {
        const BY: f32 = 3.0;
        let b = #[eager]
        ops::scale(&a, BY)?;
        return ops::scale(&scaled(&b)?, by.unwrap());
    }
    scaled(&a)
}

mod other {
    pub const BY: f32 = 3.0;
}

#[graphable]
fn imports(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scaled = |t: &Tensor<f32>| ops::scale(t, BY);
    let a = #[eager]
    ops::neg(x)?;
    let b = {
        use other::*;
        let b = #[eager]
        ops::scale(&a, BY)?;
        scaled(&b)?
    };
    scaled(&b)
}

fn main() {}
