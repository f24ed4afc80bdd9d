//! The function of the partition benches, on the CPU and on a GPU.

use graphable::{graphable, prelude::*};

/// Stands for what cannot be captured.
pub(crate) fn tiny<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::neg(x)
}

/// 33 segments of one kernel, and 32 eager regions of one between them.
#[graphable]
pub(crate) fn partitioned(x: &Tensor<f32>, one: &Param<f32>) -> Result<Tensor<f32>> {
    let mut y = ops::add(x, one)?;
    for _ in 0..32 {
        let z = #[eager]
        tiny(&y)?;
        y = ops::add(&z, one)?;
    }
    Ok(y)
}
