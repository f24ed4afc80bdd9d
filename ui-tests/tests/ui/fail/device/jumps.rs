//! Jumps out of what the device decides.
use graphable::prelude::*;

#[graphable]
fn decode(#[key] n: usize, p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p {
        return Ok(y);
    }
    for _ in 0..n {
        #[device]
        if p {
            y = ops::neg(&y)?;
            break;
        } else {
            continue;
        }
    }
    'rounds: for _ in 0..n {
        #[device]
        match k {
            0 => break 'rounds,
            _ => y = ops::neg(&y)?,
        }
    }
    #[device]
    'inner: while p {
        y = ops::neg(&y)?;
        if n == 3 {
            break;
        }
    }
    Ok(y)
}

fn main() {}
