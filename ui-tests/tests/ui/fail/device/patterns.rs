//! Patterns that would need the value on the host.
use graphable::prelude::*;

#[graphable]
fn decode(k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    match k {
        0 => y = ops::neg(&y)?,
        0 | 1 => y = ops::exp(&y)?,
        2..=4 => y = ops::sin(&y)?,
        5.0 => y = ops::cos(&y)?,
        "six" => y = ops::abs(&y)?,
        'c' => y = ops::tanh(&y)?,
        (7, _) => y = ops::relu(&y)?,
        8 if y.rank() == 2 => y = ops::silu(&y)?,
        9 | _ => {}
        n => y = ops::scale(&y, n)?,
    }
    #[device]
    match ops::gt(&ops::sum(&y, 0)?, 0.0)? {
        true => y = ops::neg(&y)?,
        _ => {}
    }
    #[device]
    match k {
        0 => y = ops::neg(&y)?,
        1 => y = ops::exp(&y)?,
    }
    #[device]
    match k {
        0 => y = ops::neg(&y)?,
        _ => {}
        1 => y = ops::exp(&y)?,
    }
    Ok(y)
}

fn main() {}
