//! An error type that cannot hold ours is one error, whatever stands in the function.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] stop: bool) -> Result<Tensor<f32>, String> {
    let h = ops::neg(x).map_err(|e| e.to_string())?;
    let a = #[eager]
    ops::exp(&h).map_err(|e| e.to_string())?;
    if stop {
        return Err("stopped".to_owned());
    }
    ops::add(&a, x).map_err(|e| e.to_string())
}

fn main() {}
