//! Values that do not steer the device.
use graphable::prelude::*;

#[graphable]
fn decode(#[key] flag: bool, t: &Scalar<f32>, m: &Tensor<f32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if flag {
        y = ops::neg(&y)?;
    }
    #[device]
    if t {
        y = ops::neg(&y)?;
    }
    #[device]
    while ops::add(m, t)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if {
        let n = x.rank();
        n == 2
    } {
        y = ops::neg(&y)?;
    }
    Ok(y)
}

#[graphable]
fn indices(#[key] k: usize, t: &Scalar<f32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    match k {
        0 => ops::neg(x)?,
        _ => x.clone(),
    };
    #[device]
    match t {
        0 => ops::neg(&y),
        _ => Ok(y),
    }
}

fn main() {}
