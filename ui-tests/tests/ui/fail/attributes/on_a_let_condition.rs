//! A boundary is the value of a condition, not its `let`; with a `#[cfg]` in the function as without.

use graphable::prelude::*;

#[graphable]
fn half(x: &Tensor<f32>) -> Result<Option<Tensor<f32>>> {
    Ok((x.rank() == 2).then(|| x.clone()))
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    if #[eager] let Some(a) = half(x)? {
        return ops::neg(&a);
    }
    ops::neg(x)
}

#[graphable]
fn configured(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[cfg(not(any()))]
    let y = ops::exp(x)?;
    while #[piecewise(cx)] let Some(a) = half(&y)? && #[device] let Some(_) = half(&a)? {
        return ops::neg(&a);
    }
    if let Some(a) = #[eager] half(&y)? && #[host] let true = a.rank() == 1 {
        return ops::neg(&a);
    }
    ops::neg(&y)
}

fn main() {}
