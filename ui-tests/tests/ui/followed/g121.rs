//! `fail/device/patterns.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    match k {
        0 | 1 => y = ops::exp(&y)?,
        2 | 3 | 4 => y = ops::sin(&y)?,
        8 => {
            if y.rank() == 2 {
                y = ops::silu(&y)?;
            }
        }
        _ => y = ops::mul(&y, &ops::cast(k)?)?,
    }
    #[device]
    if ops::gt(&ops::sum(&y, 0)?, 0.0)? {
        y = ops::neg(&y)?;
    } else {
        y = ops::exp(&y)?;
    }
    #[device]
    match k {
        0 => y = ops::neg(&y)?,
        1 => y = ops::exp(&y)?,
        _ => {}
    }
    Ok(y)
}
