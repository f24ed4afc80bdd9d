//! A pattern of `match` on the device is a constant; a variable of a capitalised name would match everything in Rust.
use graphable::prelude::*;

#[graphable(helper)]
#[allow(non_snake_case)]
fn choose(n: &Scalar<i32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let FIRST = 1i32;
    let mut y = x.clone();
    #[device]
    match n {
        FIRST => y = ops::scale(&y, 3.0)?,
        _ => {}
    }
    Ok(y)
}

fn main() {}
