//! `fail/device/jumps.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[key] n: usize, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p { ops::neg(x)? } else { x.clone() };
    let mut z = y;
    for _ in 0..n {
        z = #[device]
        if p { ops::neg(&z)? } else { z };
    }
    let mut go_on = ops::full(x.scope(), (), true)?;
    #[device]
    while ops::logical_and(&go_on, p)? {
        z = ops::neg(&z)?;
        if n == 3 {
            go_on = ops::full(x.scope(), (), false)?;
        }
    }
    Ok(z)
}
